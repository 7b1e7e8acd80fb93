-- Words had no marks at all, so that kana that differ in voicing, and vowels of Hindi or Thai, were the same.
-- Each blueprint's words are collected again at its next search.
truncate search_progress, search_words;
