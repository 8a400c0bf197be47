"""Minor units of currencies (ISO 4217): the digits behind the point that an amount can have.

Source: ISO 4217, list one, "Mnr unt"; every currency that is not named has two.
"""

from decimal import Decimal

_DIGITS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
OTHERS = {code: digits for digits, codes in _DIGITS.items() for code in codes.split()}
USUAL = 2


def unit(currency: str) -> Decimal:
    """Return one minor unit of a currency: EUR 0.01, JPY 1, KWD 0.001."""
    return Decimal(1).scaleb(-OTHERS.get(currency, USUAL))
