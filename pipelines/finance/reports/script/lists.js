// The lists that the page has: compressed JSON in its own elements, read when they are asked for.
const Lists = (() => {
  "use strict";
  const FILTERS = ["connection", "currency", "month"];
  const EXACT = [...FILTERS, "partner_id"]; // partners may have the same name
  const read = new Map();

  function names() {
    return [...document.querySelectorAll("[data-list]")].map((each) => each.dataset.list);
  }

  // Return a list with its rows as objects.
  function load(name) {
    if (!read.has(name)) read.set(name, decode(document.getElementById(`list-${name}`)));
    return read.get(name);
  }

  async function decode(element) {
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const list = await new Response(stream).json();
    list.rows = rowsOf(list);
    delete list.data;
    return list;
  }

  function rowsOf(list) {
    const rows = Array.from({ length: list.rows }, () => ({}));
    for (const [name, column] of Object.entries(list.data)) {
      const places = column.rows; // without them, each row has a value of its own
      rows.forEach((row, place) => { row[name] = column.values[places ? places[place] : place]; });
    }
    return rows;
  }

  // Letters that stay after accents are taken off, as people type them.
  const PLAIN = { "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th" };
  const OTHER_LETTERS = new RegExp(`[${Object.keys(PLAIN).join("")}]`, "g");
  const folded = new Map();

  // Return a text without case and accents, as it is compared.
  function fold(text) {
    if (!folded.has(text)) {
      const bare = text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "");
      folded.set(text, bare.replace(OTHER_LETTERS, (letter) => PLAIN[letter]));
    }
    return folded.get(text);
  }

  const FOUND_BY = ["partner", "partner_id", "bill", "break_id"];
  const CONTAINED_IN = [...FOUND_BY, "kind"];

  // Return the rows that all filters select; `own` are the columns of this list's own filters.
  // `partner` finds the partner, bill or break of this name, or else each that contains it; beside
  // `partner_id`, it only says which partner that is.
  function select(rows, filters, own) {
    const wanted = filters.partner;
    const isName = rows.some((row) => FOUND_BY.some((name) => row[name] === wanted));
    const part = fold((wanted ?? "").trim());
    return rows.filter((row) => {
      const has = (name) => !filters[name] || !(name in row) || text(row[name]) === filters[name];
      const hasPart = (name) => has(name) || parts(row[name]).includes(filters[name]);
      if (!EXACT.every(has) || !own.every(hasPart)) return false;
      if (!wanted || !("partner" in row) || (filters.partner_id && "partner_id" in row)) return true;
      if (isName) return FOUND_BY.some((name) => row[name] === wanted);
      return CONTAINED_IN.some((name) => row[name] && fold(row[name]).includes(part));
    });
  }

  // Return what a value says: of treatments, it may be two; and "overdue: 1 to 30 days" is "overdue".
  function parts(value) {
    return text(value).split(" and ").flatMap((part) => part.includes(": ") ? [part.split(": ")[0], part] : [part]);
  }

  function text(value) {
    return value ?? "none";
  }

  // Return the different values of a column of some rows, in their order.
  function values(rows, name) {
    return [...new Set(rows.map((row) => text(row[name])))];
  }

  const HAS_PARTS = new Set(["treatment", "payment", "due_in"]);
  const IN_ORDER = new Set(["payment", "due_in", "ageing"]); // severities have an order of their own

  // Return the different values by which a list of its own can be filtered.
  function choices(rows, name) {
    const found = [...new Set(values(rows, name).flatMap((value) => HAS_PARTS.has(name) ? parts(value) : [value]))];
    return IN_ORDER.has(name) ? found.sort(new Intl.Collator("en", { numeric: true }).compare) : found;
  }

  // Return the currencies of rows, in the order that all parts of the page have.
  function inOrder(rows, currencies) {
    const place = (currency) => (currencies.indexOf(currency) + 1) || Infinity;
    return values(rows, "currency").sort((one, other) => place(one) - place(other) || 0);
  }

  return { names, load, select, values, choices, inOrder, text, FILTERS };
})();
