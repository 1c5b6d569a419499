-- The dataset of every store: three tables, one of them without any key, so that nothing but exactly-once apply
-- keeps a second copy of its rows out.
CREATE TABLE sales (
    id bigint PRIMARY KEY,
    customer text NOT NULL,
    status text NOT NULL,
    total numeric(12, 2) NOT NULL,
    revision integer NOT NULL DEFAULT 0,
    note text,
    sold_at timestamptz NOT NULL
);
CREATE TABLE sale_items (
    sale_id bigint NOT NULL,
    line integer NOT NULL,
    sku text NOT NULL,
    quantity integer NOT NULL,
    price numeric(10, 2) NOT NULL,
    PRIMARY KEY (sale_id, line)
);
CREATE TABLE payments (
    counter bigint NOT NULL,
    sale_id bigint NOT NULL,
    method text NOT NULL,
    amount numeric(12, 2) NOT NULL
);
ALTER TABLE payments REPLICA IDENTITY FULL;
CREATE INDEX payments_counter ON payments (counter);
