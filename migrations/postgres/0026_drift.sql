-- In what a subscription differs from what its provider has.
alter table subscriptions add column drift text collate "C";
