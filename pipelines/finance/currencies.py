"""Currencies of ISO 4217, list one: codes, and digits behind the point.

Codes withdrawn since 2014 are among them: bills are kept for longer. A code is written in upper
case, without the spaces around it: `read_code` and the SQL of `code_of` read one alike.
"""

from decimal import Decimal
from typing import Final

_OTHER_DIGITS = {
    0: "BIF BYR CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
DIGITS: Final = {code: digits for digits, codes in _OTHER_DIGITS.items() for code in codes.split()}
USUAL_DIGITS: Final = 2
MOST_DIGITS: Final = max(DIGITS.values())
_CODES = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP
BYN BYR BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN
ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD
JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LTL LYD MAD MDL MGA MKD MMK MNT
MOP MRO MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG
QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STD STN SVC SYP SZL THB TJS
TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VEF VES VND VUV WST XAF XCD XCG
XOF XPF YER ZAR ZMW ZWG ZWL
"""
CODES: Final = frozenset(_CODES.split())
# Spaces of Unicode, and characters of no width, that a copied text may have around it.
SPACES: Final = (
    " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
)


def read_code(text: str | None) -> str | None:
    """Return a currency as it is compared: `eur ` is EUR. An unknown one stays; blank is None."""
    return (text or "").strip(SPACES).upper() or None


def lower_trimmed(text: str) -> str:
    """Return a status or kind as it is compared: in any case, without spaces around it."""
    return text.strip(SPACES).lower()


def code_of(value: str) -> str:
    """Return the SQL expression of a currency as it is compared. `value` is one of a text."""
    return f"nullif(upper(trim({value}, '{SPACES}')), '')"


def minor_unit_of(code: str) -> str:
    """Return the SQL expression of the smallest amount of a currency, of type DECIMAL(5,4)."""
    codes_of: dict[int, list[str]] = {}
    for known_code, digits in DIGITS.items():
        codes_of.setdefault(digits, []).append(known_code)
    cases = []
    for digits, codes in codes_of.items():
        unit = Decimal(1).scaleb(-digits)
        cases.append(f"WHEN {code} IN {tuple(codes)} THEN {unit:f}")
    usual = Decimal(1).scaleb(-USUAL_DIGITS)
    return f"CAST(CASE {' '.join(cases)} ELSE {usual} END AS DECIMAL(5, {MOST_DIGITS}))"


def digits_of(currency: str | None) -> int:
    """Return the digits that amounts of a currency have behind the point."""
    return DIGITS.get(currency or "", USUAL_DIGITS)


def minor_unit(currency: str | None) -> Decimal:
    """Return the smallest amount of a currency: EUR 0.01, JPY 1, KWD 0.001."""
    return Decimal(1).scaleb(-digits_of(currency))
