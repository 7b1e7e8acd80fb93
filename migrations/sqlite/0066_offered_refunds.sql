-- When admins were told to give a payment back.
alter table invoices add column refund_offered integer;
