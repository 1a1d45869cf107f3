"""Private questions for language-model agents, by the Model Context Protocol.

`gris mcp` serves one agent over standard input and output and asks a gateway with that
agent's own token. A gateway serves many over HTTP, from its own process. Either way an agent's account follows from its
token, never from the conversation.
"""
