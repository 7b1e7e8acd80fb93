-- Transactions merge the segments of words in small parts.
insert into search_words (search_words, rank) values ('automerge', 0);
insert into search_chunks (search_chunks, rank) values ('automerge', 0);
