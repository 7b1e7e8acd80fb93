create index users_by_time on users (created, _id);
