"""Currencies (ISO 4217): their codes, and the digits behind the point that an amount can have.

Source: ISO 4217, list one, "Mnr unt"; every currency that is not named has two. Codes withdrawn
since 2014 are among them: bills are kept for longer.
"""

from decimal import Decimal, localcontext

_DIGITS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
OTHERS = {code: digits for digits, codes in _DIGITS.items() for code in codes.split()}
USUAL = 2
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
CODES = frozenset(_CODES.split())


def unit(currency: str) -> Decimal:
    """Return one minor unit of a currency: EUR 0.01, JPY 1, KWD 0.001."""
    return Decimal(1).scaleb(-OTHERS.get(currency, USUAL))


def shown(amount: Decimal, currency: str) -> Decimal:
    """Return an amount with the digits of its currency, and more only where it has them."""
    own = -int(unit(currency).as_tuple().exponent)
    with localcontext(prec=80):  # twice what a DECIMAL has; Python's own 28 digits would round
        digits = max(own, -int(amount.normalize().as_tuple().exponent))
        return amount.quantize(Decimal(1).scaleb(-digits))
