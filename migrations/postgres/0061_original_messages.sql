-- What a provider said beyond what clients know of a message, which it needs back.
alter table thread_messages add column original text collate "C";
