// Amounts are exact texts such as "-1234.5". They never become floating-point numbers.
const Amounts = (() => {
  "use strict";
  const EXACT = /^(-?)(\d+)(?:\.(\d+))?$/;
  const DIGITS = 38; // as many as the books have

  // Return an amount in units of the 38th digit behind the point; null if it is not known.
  function units(text) {
    const parts = EXACT.exec(text ?? "");
    if (!parts) return null;
    const [, sign, whole, fraction = ""] = parts;
    return BigInt(sign + whole + fraction.padEnd(DIGITS, "0"));
  }

  function compare(one, other) {
    return one < other ? -1 : Number(one > other);
  }

  // Return the sum of texts as a text; what is not known adds nothing.
  function sum(texts) {
    let total = 0n;
    for (const text of texts) total += units(text) ?? 0n;
    return textOf(total);
  }

  // Return units of the 38th digit behind the point as a text.
  function textOf(value) {
    const digits = (value < 0n ? -value : value).toString().padStart(DIGITS + 1, "0");
    const sign = value < 0n ? "-" : "";
    return `${sign}${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`;
  }

  // Return what one unit of a quantity costs, rounded to six digits, but to no fewer behind the point
  // than `digits`; null if it is not known.
  function priceOf(amount, quantity, digits) {
    const above = units(amount);
    const below = units(quantity);
    if (above === null || !below) return null;
    const price = above * 10n ** BigInt(DIGITS) / below;
    const size = price < 0n ? -price : price;
    const dropped = Math.min(Math.max(size.toString().length - 6, 0), DIGITS - digits);
    const step = 10n ** BigInt(dropped);
    const rounded = (size + step / 2n) / step * step;
    return textOf(price < 0n ? -rounded : rounded);
  }

  // Return an amount as people write it, with the digits of its currency or the more that it has.
  function format(text, digits, isSigned) {
    const parts = EXACT.exec(text ?? "");
    if (!parts) return text ?? "not known";
    const [, sign, whole, fraction = ""] = parts;
    const shown = fraction.replace(/0+$/, "").padEnd(digits, "0");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    const isZero = /^0*$/.test(whole + fraction);
    let before = "";
    if (sign && !isZero) before = "\u2212";
    else if (isSigned && !isZero) before = "+";
    return before + grouped + (shown && `.${shown}`);
  }

  return { units, compare, sum, priceOf, format };
})();
