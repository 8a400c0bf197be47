"""Currencies of ISO 4217, list one: codes, and digits behind the point.

Codes withdrawn since 2014 are among them: bills are kept for longer.
"""

from decimal import Decimal
from typing import Final

DIGITS: Final = {
    code: digits
    for digits, codes in {
        0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
        3: "BHD IQD JOD KWD LYD OMR TND",
        4: "CLF UYW",
    }.items()
    for code in codes.split()
}
USUAL_DIGITS: Final = 2
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


def digits_of(currency: str | None) -> int:
    """Return the digits that amounts of a currency have behind the point."""
    return DIGITS.get(currency or "", USUAL_DIGITS)


def minor_unit(currency: str | None) -> Decimal:
    """Return the smallest amount of a currency: EUR 0.01, JPY 1, KWD 0.001."""
    return Decimal(1).scaleb(-digits_of(currency))
