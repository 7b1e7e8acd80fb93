-- An `_id` that is the identifier is stored once, as the identifier. This changes the schema, and no row.
alter table entities alter column _id drop not null;
