/** Something that the code of a lambda can use: its name, how it is called, and what it does. */
export type AtollMember = { name: string; signature: string; description: string }

const member = (name: string, signature: string, description: string): AtollMember => ({ name, signature, description })

/** What the code of a lambda can use, by the object that has it. A test compares it with the sandbox. */
export const atollMembers = {
  request: [
    member('method', ': string', 'The method of the request, such as POST.'),
    member('path', ': string', 'The path of the request.'),
    member('query', ': object', 'The parameters of the query by name.'),
    member('headers', ': object', 'The headers by their names in lower case.'),
    member('body', ': any', 'The body: parsed JSON, or text.'),
    member('rawBody', ': string', 'The body as it was sent.'),
    member('user', ': {_id, username, roles} | null', 'The caller.'),
    member('workspace', ': object | null', 'The active workspace of the caller.'),
    member('event', ': object', 'What happened, where an event or a schedule runs the lambda.'),
  ],
  atoll: [
    member('entities', '(blueprint)', 'The entities of a blueprint.'),
    member('events', ': {emit}', 'Records events.'),
    member('env', ': object', 'The values of the environment by name.'),
    member('crypto', ': object', 'Hashes and signatures.'),
    member('fetch', '(url, {method, headers, body}?)', 'Sends a request to another server.'),
    member('log', '(...values)', 'Writes a line to the log of the run.'),
  ],
  entities: [
    member('find', '(query?)', "The entities that match: {price: {$lt: 20}, $sort: '-created', $limit: 10}."),
    member('get', '(identifier, query?)', 'One entity.'),
    member('create', '(entity)', 'Creates an entity and returns it.'),
    member('update', '(identifier, changes)', 'Changes the given fields and returns the entity.'),
    member('remove', '(identifier)', 'Removes an entity.'),
  ],
  events: [member('emit', '({kind, eventName, metadata})', 'Records an event.')],
  crypto: [
    member('hash', '(algorithm, data)', 'The hash of data as bytes: sha1, sha256, sha384 or sha512.'),
    member('hmac', '(algorithm, key, data)', 'The signature of data as bytes.'),
    member('encode', '(bytes, encoding)', 'Bytes as text: utf8, hex, base64 or base64url.'),
    member('decode', '(text, encoding)', 'Text as bytes.'),
    member('timingSafeEqual', '(one, other)', 'Whether both are equal, in constant time.'),
  ],
} satisfies Record<string, AtollMember[]>

/** An object that the code of a lambda can use. */
export type AtollObject = keyof typeof atollMembers
