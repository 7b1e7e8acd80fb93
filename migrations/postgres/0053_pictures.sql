-- The pixels of pictures, and the thumbnails that are stored beside a content: JSON of their names and bytes.
alter table files add column width bigint;
alter table files add column height bigint;
alter table file_contents add column thumbnails text collate "C";
alter table file_contents add column thumbnail_bytes bigint not null default 0;
