"""What one member changes, from a policy's promise to what a mechanism meets, held against what is charged."""
