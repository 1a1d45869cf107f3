"""What every server of Gris needs and no service knows more about than the others: who may call, and over what line.

Services and the gateway may import this room; it imports nothing of theirs.
"""
