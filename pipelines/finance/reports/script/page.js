// The page: which list is shown, and its filters. All of it is in the address, behind `#/`.
(() => {
  "use strict";
  const { element, month } = Cells;
  const place = (name) => document.getElementById(name);
  const main = place("summary");

  // Return the list and the filters of the address; without a list, the summary is shown.
  function address() {
    const [name, query] = location.hash.slice(2).split("?");
    const isList = location.hash.startsWith("#/") && Lists.names().includes(name);
    return { name: isList ? name : "", filters: Object.fromEntries(new URLSearchParams(query)) };
  }

  // Show what the address says. What had the focus may be gone then: the title takes it.
  async function changed() {
    await show();
    if (document.activeElement === document.body) place("list-title").focus();
  }

  async function show() {
    const { name, filters } = address();
    for (const link of document.querySelectorAll("#views a")) {
      const isShown = link.hash === `#/${name}` || (!name && link.hash === "#summary");
      if (isShown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    main.hidden = Boolean(name);
    place("lists").hidden = !name;
    if (name) await showList(name, filters);
  }

  async function showList(name, filters) {
    const list = withoutEmpty(await Lists.load(name));
    const rows = Lists.select(list.rows, filters, list.filters);
    place("list-title").textContent = list.title;
    place("list-note").textContent = list.note;
    place("list-left-out").replaceChildren(...leftOut(list));
    place("list-rows").textContent = sentence(rows.length, list, filters);
    fill(list, filters);
    const boxes = [];
    for (const currency of Lists.inOrder(rows, list.currencies)) {
      const own = rows.filter((row) => Lists.text(row.currency) === currency);
      const heading = currency === "none" ? "No currency" : currency;
      boxes.push(element("h3", {}, heading), Tables.make(list, own, heading, OPENED[name]));
    }
    place("tables").replaceChildren(...boxes);
    if (rows.length === 1) place("tables").querySelector("button.more")?.click();
  }

  function leftOut(list) {
    if (!list.left_out) return [];
    const command = element("code", {}, list.command);
    const summary = element("summary", {}, `Not in this file: ${list.left_out} more.`);
    return [element("details", {}, summary, "To see them: ", command)];
  }

  function sentence(shown, list, filters) {
    const number = (value) => value.toLocaleString("en");
    const all = list.rows.length;
    if (!all) return "No rows.";
    const isFiltered = Object.values(filters).some(Boolean);
    const rows = `${number(all)} ${all === 1 ? "row" : "rows"}.`;
    if (!isFiltered) return rows;
    const others = list.left_out ? " Others that belong to it may not be in this file." : "";
    return `${number(shown)} of ${rows}${others}`;
  }

  // Columns without a value are not shown, nor the connection where there is only one.
  function withoutEmpty(list) {
    const isOne = place("filter-connection").length < 3;
    const columns = list.columns.filter((column) => {
      if (column.kind === "connection") return !isOne;
      return list.rows.some((row) => (row[column.name] ?? null) !== null);
    });
    return { ...list, columns };
  }

  // Return the records of a break, and what to do about it.
  async function openBreak(row, digits) {
    const list = await Lists.load("records");
    const records = list.rows.filter((each) => each.break_id === row.break_id);
    if (row.rows === null) return element("p", {}, "The records do not show this break any more, or the mapping accepts it: none are kept of it.");
    const content = element("div", {}, Tables.plain(withoutEmpty({ ...list, rows: records }), digits));
    if (records.length < row.rows) {
      const command = element("code", {}, `partner-sync trace break ${row.break_id}`);
      content.append(element("p", {}, `${records.length} of ${row.rows} records. All: `, command));
    }
    if (row.remedy) content.append(element("p", {}, "To do: ", ...marked(row.remedy)));
    return content;
  }

  // Return the records of breaks that are a bill or its lines, each with the list of its break.
  async function breaksOf(bill) {
    const records = (await rowsOf("records")).filter((each) =>
      each.bill === bill.bill && each.connection === bill.connection);
    const found = [];
    for (const name of records.length ? ["breaks", "own-breaks", "resolved"] : []) {
      const listed = new Set((await rowsOf(name)).map((each) => each.break_id));
      found.push(...records.filter((each) => listed.has(each.break_id)).map((each) => ({ ...each, list: name })));
    }
    return found;
  }

  // Return the resolved breaks of a bill that have no records: the rows show them no longer.
  async function goneBreaksOf(bill, lines) {
    const usage = new Set(lines.map((each) => each.reference).filter((each) => each !== null));
    return (await rowsOf("resolved"))
      .filter((each) => each.connection === bill.connection && (each.bill === bill.bill || usage.has(each.usage)))
      .map((each) => ({ ...each, list: "resolved" }));
  }

  const NAMED = { "breaks": "Open breaks", "own-breaks": "Open breaks with own books", "resolved": "Resolved breaks" };

  // Return sentences that link to breaks, one for each list that has some.
  function named(breaks) {
    return Object.entries(NAMED).flatMap(([list, title]) => {
      const ids = new Set(breaks.filter((each) => each.list === list).map((each) => each.break_id));
      return linked(`${title}: `, [...ids].map((id) => element("a", { href: `#/${list}?partner=${id}` }, id)));
    });
  }

  // Return a sentence of links; none without a link.
  function linked(title, links, end = ".") {
    if (!links.length) return [];
    return [element("p", {}, title, ...links.flatMap((link, place) => place ? [", ", link] : [link]), end)];
  }

  const UNSTATED = "not known"; // the service does not say it, or the mapping names no field
  const stated = (day) => day ? Cells.day(day) : UNSTATED;

  // Return when a bill is due and when it was paid, as the service says.
  function paymentOf(bill) {
    if (bill.kind === "credit note") return `A credit note${bill.payment ? `, ${bill.payment}` : ""}.`;
    if (bill.kind !== "bill") return `Status: ${bill.kind}. It counts in no sum.`;
    const due = `To be paid by: ${stated(bill.due)}. `;
    if (bill.payment === null) return `${due}Whether it is paid: not known.`;
    if (bill.payment === "paid") return `${due}Paid on: ${stated(bill.paid_on)}.`;
    return `${due}Not paid in full${bill.paid_on ? `; day of payment, as the service says: ${Cells.day(bill.paid_on)}` : ""}.`;
  }

  const VERBS = { "bill": "Bills", "credit note": "Credits" };

  // Return the sentence which other bills name the same usage.
  async function sameUsage(bill, place) {
    const others = (await rowsOf("same-usage")).filter((each) => each.bill === place);
    const links = others.map(({ other, kind, records }) => element("span", {}, `${kind} `,
      element("a", { href: `#/bills?${new URLSearchParams({ partner: other, connection: bill.connection })}` }, other),
      ` (${records} ${records === 1 ? "record" : "records"})`));
    const more = others.length && others[0].others - others.length;
    return linked(`${VERBS[bill.kind] ?? "Names"} the same usage as: `, links, more ? `, and ${more} more.` : ".");
  }

  // Return a line with what its usage has; `=` is the value of the line.
  function withUsage(line) {
    const of = (name) => line[`used_${name}`] === "=" ? line[name] : line[`used_${name}`];
    return { ...line, used_quantity: of("quantity"), used_amount: of("amount") };
  }

  // Return the lines of a bill, which name it by its place in the list of bills.
  async function openBill(row, digits) {
    if (!Lists.names().includes("lines")) return element("p", {}, "Lines of bills are not known.");
    const list = await Lists.load("lines");
    const place = (await Lists.load("bills")).rows.indexOf(row);
    const breaks = await breaksOf(row);
    const open = breaks.filter((each) => each.list !== "resolved");
    const breakOf = new Map(open.map((each) => [each.line, each.break_id]));
    const lines = list.rows.filter((each) => each.bill === place)
      .map((each) => ({ ...withUsage(each), break_id: breakOf.get(each.line) ?? null }));
    breaks.push(...await goneBreaksOf(row, lines));
    return element("div", {}, element("p", {}, paymentOf(row)), ...await sameUsage(row, place), ...named(breaks), ...partOf(list, lines, lines[0]?.lines, "lines of this bill", digits));
  }

  // Return a table of rows which another row has: `all` of them, of which some may not be here.
  function partOf(list, rows, all, noun, digits) {
    const isWhole = rows.length > 0 && rows.length === all;
    const nodes = [];
    if (rows.length) nodes.push(Tables.plain(withoutEmpty({ ...list, rows, has_sums: isWhole }), digits));
    if (!isWhole) {
      const said = rows.length ? `${rows.length} of ${all} ${noun}.` : `The ${noun} are not in this file.`;
      nodes.push(element("p", {}, `${said} All of them: `, element("code", {}, list.command)));
    }
    return nodes;
  }

  const NAMES = ["plan", "metric", "region", "unit"];

  // Return the lines of bills of a price: those of its partner's month, plan and metric. They are all
  // that is billed at it if they add up to its amount.
  async function openPrice(row, digits) {
    const list = Lists.names().includes("lines") ? await Lists.load("lines") : { rows: [], columns: [] };
    const bills = await rowsOf("bills");
    const same = (one, other, names) => names.every((name) => (one[name] ?? null) === (other[name] ?? null));
    const lines = list.rows.filter((each) => each.reference !== null && same(each, row, NAMES)
      && bills[each.bill]?.kind === "bill" && same(bills[each.bill], row, ["connection", "partner_id", "month", "currency"]));
    const bill = { name: "bill", label: "Bill", kind: "text", link: "bills", by: ["bill"], only: "", empty: "" };
    const rows = lines.map((each) => ({ ...each, bill: bills[each.bill].bill, break_id: null }));
    const isWhole = Amounts.units(Amounts.sum(lines.map((each) => each.amount))) === Amounts.units(row.now);
    const columns = [bill, ...list.columns.filter((each) => !NAMES.includes(each.name))];
    const nodes = rows.length ? [Tables.plain(withoutEmpty({ ...list, columns, rows, has_sums: isWhole }), digits)] : [];
    if (isWhole) return element("div", {}, ...nodes);
    const { command } = await Lists.load("prices");
    const said = rows.length ? "Not all lines of bills with this price are in this file. " : "No line of a bill with this price is in this file. ";
    return element("div", {}, ...nodes, element("p", {}, `${said}All of them: `, element("code", {}, command)));
  }

  const NO_NAME = "No plan or metric is mapped, or no record has one: price also contains another mix of them.";

  // Return the plans and metrics of a change, which name it by its place in the list of changes.
  async function openChange(row, digits) {
    if (!Lists.names().includes("items")) return element("p", {}, "Plans and metrics are not known.");
    const list = await Lists.load("items");
    const place = (await Lists.load("changes")).rows.indexOf(row);
    const items = list.rows.filter((each) => each.change === place);
    const named = NAMES.filter((name) => items.some((each) => each[name]));
    const rows = items.map((each) => each.others === null ? { ...each, ...pricesOf(each, digits) } : summed(each, items, named));
    const nodes = partOf(list, rows, items[0]?.items, "plans and metrics of this change", digits);
    if (items.some((each) => each.kind === null) && !named.length) nodes.unshift(element("p", {}, NO_NAME));
    if (items.some((each) => each.others)) nodes.push(element("p", {}, "All of them: ", element("code", {}, list.command)));
    return element("div", {}, ...nodes);
  }

  // Return what one unit of an item costs, before and now, if it is usage.
  function pricesOf(item, digits) {
    if (item.kind !== null) return { price_before: null, price_now: null };
    return {
      price_before: Amounts.units(item.quantity_before) === 0n ? "new at this price" : Amounts.priceOf(item.before, item.quantity_before, digits),
      price_now: Amounts.priceOf(item.now, item.quantity, digits),
    };
  }

  // Return the row that stands for many items: how many they are is said in its first column.
  function summed(row, items, named) {
    const hasKind = items.some((each) => each.others === null && each.kind !== null);
    const [first] = hasKind || !named.length ? ["kind"] : named;
    const empty = Object.fromEntries(named.map((name) => [name, ""]));
    return { ...row, ...empty, kind: null, [first]: row.kind, price_before: null, price_now: null };
  }

  const OPENED = {
    "breaks": openBreak, "own-breaks": openBreak, "resolved": openBreak, "bills": openBill, "changes": openChange,
    "prices": openPrice,
  };

  // Show what is in backticks as code.
  function marked(text) {
    return text.split("`").map((part, place) => place % 2 ? element("code", {}, part) : part);
  }

  // Show the filters of the address, those that the list has. What is being typed stays.
  function fill(list, filters) {
    const [first = {}] = list.rows;
    for (const name of [...Lists.FILTERS, "partner"]) {
      const input = place(`filter-${name}`);
      const value = filters[name] ?? "";
      if (input.options && ![...input.options].some((each) => each.value === value)) {
        input.append(option(name, value));
      }
      if (name !== "partner" || !typing) input.value = value;
      const isOne = name === "connection" && input.length < 3;
      input.parentElement.hidden = isOne || !(name in first);
    }
    fillOwn(list, filters);
  }

  // Show the filters that only this list has: the values of some of its columns.
  function fillOwn(list, filters) {
    const box = place("filters-own");
    if (box.dataset.of !== list.name) {
      box.dataset.of = list.name;
      const columns = list.columns.filter((each) => list.filters.includes(each.name));
      box.replaceChildren(...columns.map((column) => ownFilter(list, column)));
    }
    for (const input of box.querySelectorAll("select")) {
      const value = filters[input.name] ?? "";
      if (![...input.options].some((each) => each.value === value)) input.append(element("option", { value }, value));
      input.value = value;
    }
  }

  function ownFilter(list, column) {
    const text = (value) => Cells.textOf(column, { [column.name]: value });
    const options = Lists.choices(list.rows, column.name).map((value) => element("option", { value }, value === "none" ? text(null) : text(value)));
    const all = element("option", { value: "" }, "all");
    return element("label", {}, `${column.label} `, element("select", { name: column.name }, all, ...options));
  }

  function option(name, value) {
    const text = name === "month" && value !== "none" ? month(value) : value;
    return element("option", { value }, value === "none" ? `no ${name}` : text);
  }

  function chosen() {
    const query = new URLSearchParams();
    for (const name of [...Lists.FILTERS, "partner"]) {
      const { value } = place(`filter-${name}`);
      if (value) query.set(name, value);
    }
    const { filters } = address();
    if (filters.partner_id && query.get("partner") === filters.partner) query.set("partner_id", filters.partner_id);
    for (const { name, value } of place("filters-own").querySelectorAll("select")) {
      if (value) query.set(name, value);
    }
    return `#/${address().name}?${query}`;
  }

  function filtered() {
    clearTimeout(typing);
    typing = 0;
    location.hash = chosen();
  }

  // What is typed is found after a short pause. `Back` leaves it as a whole, not letter by letter.
  const PAUSE = 250; // ms
  let typing = 0;

  function typed() {
    clearTimeout(typing);
    typing = setTimeout(() => {
      typing = 0;
      const write = address().filters.partner ? "replaceState" : "pushState";
      history[write](null, "", chosen());
      show();
    }, PAUSE);
  }

  // Return the rows of a list; none if its table could not be evaluated.
  async function rowsOf(name) {
    return Lists.names().includes(name) ? (await Lists.load(name)).rows : [];
  }

  // Fill the filters with what the lists of months and partners have.
  async function prepare() {
    const months = await rowsOf("months");
    for (const name of Lists.FILTERS) {
      const options = Lists.values(months, name).map((value) => option(name, value));
      place(`filter-${name}`).append(...options);
    }
    const partners = Lists.values(await rowsOf("partners"), "partner");
    place("partner-names").append(...partners.map((value) => element("option", { value })));
  }

  // Months and breaks of the summary lead to their lists.
  function linkSummary() {
    for (const each of document.querySelectorAll("[data-find]")) {
      const link = element("a", { href: `#/${each.dataset.find}` }, ...each.childNodes);
      each.append(link);
      each.hidden = false;
    }
  }

  async function start() {
    await prepare();
    linkSummary();
    place("views").hidden = false;
    place("filters").addEventListener("change", filtered);
    place("filter-partner").addEventListener("input", typed);
    place("filters").addEventListener("submit", (event) => event.preventDefault());
    place("clear").addEventListener("click", () => { location.hash = `/${address().name}`; });
    addEventListener("hashchange", changed);
    await show();
    document.documentElement.dataset.ready = "yes";
  }

  start();
})();
