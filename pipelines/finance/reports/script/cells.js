// What a cell shows of a value. Text from data becomes text nodes, never HTML.
const Cells = (() => {
  "use strict";
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const NUMBERS = new Set(["amount", "change", "quantity", "price", "count", "days"]);
  const ANSWERS = {
    "balanced": ["Yes: balanced", "good"],
    "open breaks": ["No: open breaks", "bad"],
    "not proven": ["Not proven", "warn"],
    "no open break": ["No open break", ""],
    "no open break so far": ["No open break so far", ""],
  };
  const SEVERITIES = { high: "bad", medium: "warn", low: "" };

  function element(name, attributes = {}, ...content) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  }

  function month(text) {
    if (!text) return "no month";
    const [year, number] = text.split("-");
    return `${MONTHS[number - 1]} ${year}`;
  }

  function day(text) {
    return `${text.slice(8)} ${month(text.slice(0, 7))}`;
  }

  // Return the text of a value.
  function textOf(column, row, digits) {
    const value = row[column.name];
    if (value === null && column.kind !== "month") return column.empty;
    switch (column.kind) {
      case "amount":
      case "price": return Amounts.format(value, digits, false);
      case "change": return Amounts.format(value, digits, true);
      case "quantity": return Amounts.format(value, 0, false);
      case "count": return value.toLocaleString("en");
      case "month": return month(value);
      case "day": return day(value);
      case "file": return month(value.slice(0, 7)); // 2026-09/name.html
      case "answer": return ANSWERS[value]?.[0] ?? value;
      default: return String(value);
    }
  }

  // Return what is compared when a column is sorted.
  function keyOf(column, row) {
    const value = row[column.name];
    if (["amount", "change", "quantity"].includes(column.kind)) return Amounts.units(value);
    if (column.kind === "severity") return Object.keys(SEVERITIES).indexOf(value);
    return value;
  }

  function link(column, row, text) {
    const filters = new URLSearchParams(column.only);
    for (const name of column.by) {
      // The sum of all partners is of no partner and no connection.
      if (row.connection === null && ["partner", "connection"].includes(name)) continue;
      // A bill or a break is found as a partner is.
      filters.set(["bill", "break_id", "other"].includes(name) ? "partner" : name, Lists.text(row[name]));
      if (name === "partner" && "partner_id" in row) filters.set("partner_id", Lists.text(row.partner_id));
    }
    return element("a", { href: `#/${column.link}?${filters}` }, text);
  }

  // Return the node of a cell.
  function node(column, row, digits) {
    const text = textOf(column, row, digits);
    const value = row[column.name];
    if (column.kind === "number" || column.opens) {
      return element("button", { type: "button", "aria-expanded": "false", class: "more" }, text);
    }
    if (column.kind === "answer") return badge(text, ANSWERS[value]?.[1]);
    if (column.kind === "severity") return badge(text, SEVERITIES[value]);
    if (column.kind === "file" && value) return element("a", { href: `../statements/${encodeURI(value)}` }, text);
    const isEmpty = text === "" || (value === 0 && column.kind === "count");
    const shown = column.kind === "partner" ? element("bdi", {}, text) : text;
    if (column.link && !isEmpty) return link(column, row, shown);
    return typeof shown === "string" ? document.createTextNode(shown) : shown;
  }

  function badge(text, look) {
    return element("span", { class: look ? `badge ${look}` : "" }, text);
  }

  function isNumber(column) {
    return NUMBERS.has(column.kind);
  }

  return { element, month, day, textOf, keyOf, node, isNumber };
})();
