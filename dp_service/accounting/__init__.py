"""The guarantee of a budget, and the budget that reaches a guarantee, by composing the mechanisms' guarantees.

Pure functions. Bounds on privacy loss are computed in interval arithmetic and rounded up to the next float.

Papers, as the modules name them: Bun and Steinke 2016 (arXiv:1605.02065); Canonne, Kamath and Steinke 2020
(arXiv:2004.00010); Dong, Durfee and Rogers 2020 (arXiv:1909.13830); Durfee and Rogers 2019 (arXiv:1905.04273); Kairouz,
Oh and Viswanath 2017 (arXiv:1311.0776); Rogers et al. 2020 (arXiv:2002.05839); Swanberg et al. 2023 (arXiv:2301.01998).
"""
