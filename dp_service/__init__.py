"""The stateless service of Gris: policy, query translation, price and noise. It never knows who asks."""
