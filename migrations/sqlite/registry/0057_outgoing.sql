-- Since when nothing leaves a tenant that is a copy; null for others.
alter table tenants add column outgoing_held integer;
