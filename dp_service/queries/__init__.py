"""Policy, questions and their translation: what may be asked, what a question means, and how an engine is asked.

A question comes as SQL (`sql`) or in the structured form (`structured`). `resolution` checks it against the `policy`,
brings it into its canonical form (`canonical`) and picks the mechanism; `render` writes the query for an engine afresh
from that. Text from a question reaches an engine only inside literals that `render` quotes itself.
"""
