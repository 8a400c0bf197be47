-- The bills that the page lists. A bill is named by its number, if it has one: identifiers that say
-- nothing take much of the file.
SELECT
    bills.connection, bills.bill, bills.partner, bills.partner_id,
    strftime(bills.month, '%Y-%m') AS month, bills.currency,
    strftime(bills.issued_at, '%Y-%m-%d') AS issued, strftime(bills.due_on, '%Y-%m-%d') AS due,
    strftime(bills.paid_on, '%Y-%m-%d') AS paid_on, coalesce(bills.apart, 'bill') AS kind,
    if(kind = 'bill', exact(bills.amount), NULL) AS billed,
    if(kind = 'credit note', exact(bills.amount), NULL) AS credited,
    if(kind IN ('bill', 'credit note'), NULL, exact(bills.amount)) AS not_counted,
    if(bills.open_amount < 0, NULL, exact(bills.open_amount)) AS open,
    if(bills.open_amount < 0, exact(bills.open_amount), NULL) AS unused, bills.payment, bills.due_in,
    bills.in_question
FROM listed_bills AS bills
ORDER BY bills.place
