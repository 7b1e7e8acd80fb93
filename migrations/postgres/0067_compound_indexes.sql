-- What an index of several fields leads by; null for the index of one field.
alter table field_indexes add column parts text collate "C";
