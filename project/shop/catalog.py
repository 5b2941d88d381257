"""What the shop sells: a fixed list, prices in cents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Article:
    sku: str
    name: str
    price_cents: int


ARTICLES = {
    article.sku: article
    for article in (
        Article("teapot", "Teapot", 2490),
        Article("cup", "Cup", 690),
        Article("kettle", "Kettle", 3990),
        Article("tea-tin", "Tin of tea", 1150),
    )
}

MAX_QUANTITY = 100
"""Pieces in one order: a typo must not sell the whole store."""
