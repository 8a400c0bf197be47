-- needs: dated_totals month_rows usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- Why a month of each item is not like the one before. An item is all that is mapped of plan, metric, unit
-- and region of a partner. All parts add up to the difference.
-- What is ordinary is neither late, restated, credit note nor fee.
-- A product of more than 38 digits is not computed: what it would explain is unexplained.
WITH first_months AS (
    SELECT totals.connection, totals.side, min(totals.month) AS month
    FROM dated_totals AS totals
    GROUP BY totals.connection, totals.side
), months AS (
    -- Where one of the two months has no known cut-off, both are compared as they are now.
    SELECT
        this.connection, this.side, this.month, this.cut_off IS NOT NULL AS is_due,
        greatest(this.history_from, before.history_from) AS history_from
    FROM cut_offs AS this
    JOIN first_months
        ON first_months.connection = this.connection AND first_months.side = this.side
        AND first_months.month < this.month
    LEFT JOIN cut_offs AS before
        ON before.connection = this.connection AND before.side = this.side
        AND before.month = (this.month - INTERVAL 1 MONTH)::DATE
), halves AS (
    SELECT
        totals.* EXCLUDE (month, organization), unnest([true, false]) AS is_this,
        unnest([totals.month, (totals.month + INTERVAL 1 MONTH)::DATE]) AS month
    FROM dated_totals AS totals
), parts AS (
    SELECT
        halves.*, months.is_due, months.history_from,
        if(months.history_from IS NULL, halves.rows_then, halves.rows_now) AS base_rows,
        if(months.history_from IS NULL, halves.counted_then, halves.counted_now) AS counted,
        if(months.history_from IS NULL, halves.quantity_then, halves.quantity_now)
            AS base_quantity,
        coalesce(if(months.history_from IS NULL, halves.amount_then, halves.amount_now), 0)
            AS base,
        if(months.history_from IS NULL, coalesce(halves.amount_late, 0), 0) AS late,
        coalesce(halves.amount_now, 0) - base - late AS restated
    FROM halves
    JOIN months USING (connection, side, month)
), items AS (
    SELECT
        parts.connection, parts.side, parts.partner, parts.currency, parts.month, parts.is_due,
        parts.history_from, parts.kind, parts.plan, parts.metric, parts.unit, parts.region,
        coalesce(sum(parts.amount_now) FILTER (parts.is_this), 0) AS amount,
        coalesce(sum(parts.amount_now) FILTER (NOT parts.is_this), 0) AS amount_before,
        sum(parts.quantity_now) FILTER (parts.is_this) AS quantity,
        sum(parts.quantity_now) FILTER (NOT parts.is_this) AS quantity_before,
        sum(parts.rows_now - parts.counted_now) FILTER (parts.is_this) AS uncounted,
        sum(parts.rows_now - parts.counted_now) FILTER (NOT parts.is_this) AS uncounted_before,
        sum(if(parts.is_this, parts.late, -parts.late)) AS late,
        sum(if(parts.is_this, parts.restated, -parts.restated)) AS restated,
        coalesce(bool_or(parts.base_rows > 0) FILTER (parts.is_this), false) AS is_there,
        coalesce(bool_or(parts.base_rows > 0) FILTER (NOT parts.is_this), false) AS was_there,
        sum(parts.counted) = sum(parts.base_rows) AS is_counted,
        coalesce(sum(parts.base) FILTER (NOT parts.is_this), 0) AS base_before,
        coalesce(sum(parts.base) FILTER (parts.is_this), 0) - base_before AS change,
        coalesce(sum(parts.base_quantity) FILTER (NOT parts.is_this), 0) AS base_quantity_before,
        coalesce(sum(parts.base_quantity) FILTER (parts.is_this), 0) - base_quantity_before
            AS more_quantity
    FROM parts
    GROUP BY
        parts.connection, parts.side, parts.partner, parts.currency, parts.month, parts.is_due,
        parts.history_from, parts.kind, parts.plan, parts.metric, parts.unit, parts.region
), in_currency AS (
    SELECT items.*, coalesce(currencies.minor_unit, 0.01::DECIMAL(5, 4)) AS minor_unit
    FROM items
    LEFT JOIN reconciliation.currencies AS currencies USING (currency)
), whole_numbers AS (
    SELECT
        items.*, TRY(items.change + 0::DECIMAL(5, 4)) AS fine_change,
        whole_quantity(items.more_quantity) AS more,
        whole_quantity(items.base_quantity_before) AS before,
        whole_amount(items.base_before) AS value, whole_amount(items.minor_unit) AS minor
    FROM in_currency AS items
), fractions AS (
    -- The volume in minor units, without its sign, is above / below, half to even.
    SELECT
        whole_numbers.*,
        TRY(abs(more // gcd(more, before)) * abs(value // gcd(value, minor))) AS above,
        TRY(abs(before // gcd(more, before)) * (minor // gcd(value, minor))) AS below
    FROM whole_numbers
), rounded AS (
    SELECT
        fractions.*, fractions.above // fractions.below AS whole,
        fractions.above % fractions.below AS rest, fractions.below - rest AS lacking,
        whole + if(rest > lacking OR (rest = lacking AND whole % 2 = 1), 1, 0) AS units
    FROM fractions
), explained AS (
    SELECT
        rounded.*,
        bool_or(rounded.is_there) FILTER (rounded.kind = 'usage') OVER one AS has_base,
        bool_or(rounded.was_there) FILTER (rounded.kind = 'usage') OVER one AS had_base,
        CASE WHEN NOT rounded.is_counted THEN NULL
             WHEN rounded.before = 0 OR NOT (rounded.is_there AND rounded.was_there)
                THEN rounded.fine_change - rounded.fine_change
             ELSE TRY(rounded.fine_change - sign(rounded.more) * sign(rounded.before)
                * sign(rounded.value) * rounded.units::DECIMAL(33, 0) * rounded.minor_unit)
        END AS price,
        rounded.fine_change - price AS volume
    FROM rounded
    WINDOW one AS (
        PARTITION BY rounded.connection, rounded.side, rounded.partner, rounded.currency,
            rounded.month
    )
), named AS (
    SELECT
        explained.*,
        CASE WHEN explained.kind = 'credit note' THEN 'credits'
             WHEN explained.kind = 'fee' THEN 'fees'
             WHEN explained.had_base IS NOT TRUE THEN 'new'
             WHEN explained.has_base IS NOT TRUE THEN 'lost'
             WHEN explained.price IS NULL THEN 'unexplained' ELSE 'items' END AS part
    FROM explained
)
SELECT
    named.connection, named.side, named.partner, named.currency, named.month, named.kind, named.plan,
    named.metric, named.unit, named.region,
    if(named.uncounted_before > 0, NULL, coalesce(named.quantity_before, 0)) AS quantity_before,
    if(named.uncounted > 0, NULL, coalesce(named.quantity, 0)) AS quantity,
    named.amount_before, named.amount, named.amount - named.amount_before AS difference,
    if(named.history_from IS NULL, named.late, NULL) AS late,
    if(named.history_from IS NULL, named.restated, NULL) AS restated,
    if(named.part = 'credits', named.change, 0) AS credits,
    if(named.part = 'fees', named.change, 0) AS fees,
    if(named.part = 'new', named.change, 0) AS new,
    if(named.part = 'lost', named.change, 0) AS lost,
    if(named.part = 'items', named.volume, 0) AS volume,
    if(named.part = 'items', named.price, 0) AS price,
    if(named.part = 'unexplained', named.change, 0) AS unexplained,
    named.is_due, named.history_from
FROM named
