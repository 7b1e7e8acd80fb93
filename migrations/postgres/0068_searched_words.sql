-- With row-level security, only leakproof operators may use an index, and `@@` is none of them. This view has the condition of
-- the policy itself. It reads as its owner, whom the policy of this one table does not bind (`isolate.sql`).
create index search_words_by_word on search_words using gin (words) with (gin_pending_list_limit = 256);
-- The number of a field is a part of its words, so they hardly ever are those of two tenants. `is true` keeps the condition from
-- an index: PostgreSQL would combine it with all rows of the tenant.
create view searched_words as
  select entity, words from search_words where (tenant_id = (select current_setting('app.tenant')::uuid)) is true;
