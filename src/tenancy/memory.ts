import type { Db, Store, Tx } from '../storage/port'

/** What is kept in memory, by what it was read from. */
export type Topic =
  | 'tenants'
  | 'blueprints'
  | 'actors'
  | 'configurations'
  | 'changes'
  | 'plugins'
  | 'lambdas'
  | 'connections'

/** What is made with the help of another topic is forgotten with it. */
const resting: Partial<Record<Topic, Topic>> = { configurations: 'actors' }

const CHECK = 1_000 // ms; this long another process's change may go unnoticed
const SHELF = 20_000 // values

type Shelf = Map<string, unknown>
type Memory = { checked: number; heard: number; versions: Map<string, unknown>; shelves: Map<Topic, Shelf> }

const memories = new WeakMap<Db, Memory>()

/**
 * A value of one tenant, kept in memory until a process changes its topic; at once when it is known. What `load` doesn't
 * find (undefined) is asked for again each time, so that nobody can fill the memory with what doesn't exist.
 */
export function recall<Value>(
  { db, heard }: Pick<Store, 'db' | 'heard'>,
  topic: Topic,
  key: string,
  load: () => Promise<Value>,
): Value | Promise<Value> {
  const memory = memoryOf(db)
  const told = heard()
  if (told !== memory.heard || performance.now() - memory.checked > CHECK)
    return check(db, memory, told).then(() => remember(memory, topic, key, load))
  return (shelfOf(memory, topic).get(key) as Value | undefined) ?? remember(memory, topic, key, load)
}

async function remember<Value>(memory: Memory, topic: Topic, key: string, load: () => Promise<Value>): Promise<Value> {
  const shelf = shelfOf(memory, topic)
  const found = shelf.get(key)
  if (found !== undefined) return found as Value
  const value = await load()
  // Unless it was forgotten while we were reading: then it may be stale already.
  if (value !== undefined && shelfOf(memory, topic) === shelf) {
    if (shelf.size >= SHELF) shelf.clear()
    shelf.set(key, value)
  }
  return value
}

/** A write after which no process relies on what it remembered of the topic: this one at once, others within a second. */
export async function changing<T>(store: Store, topic: Topic, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await store.write(async (tx) => {
      const result = await work(tx)
      await touch(tx, topic)
      return result
    })
  } finally {
    forget(store, topic)
  }
}

/** Tells other processes, in the transaction that changes what they remember. */
export async function touch(tx: Tx, topic: Topic) {
  await tx.ask(
    'insert into versions (topic, version) values (?, 1) on conflict ("topic") do update set version = versions.version + 1',
    [topic],
  )
}

/** Forgets a topic in this process; to be called after the commit. */
export const forget = ({ db }: Store, topic: Topic) => drop(memoryOf(db), topic)

function drop({ shelves }: Memory, topic: Topic) {
  shelves.delete(topic)
  if (resting[topic]) shelves.delete(resting[topic])
}

function memoryOf(db: Db): Memory {
  const found = memories.get(db)
  if (found) return found
  const memory: Memory = { checked: Number.NEGATIVE_INFINITY, heard: 0, versions: new Map(), shelves: new Map() }
  memories.set(db, memory)
  return memory
}

function shelfOf(memory: Memory, topic: Topic): Shelf {
  const found = memory.shelves.get(topic)
  if (found) return found
  const shelf: Shelf = new Map()
  memory.shelves.set(topic, shelf)
  return shelf
}

async function check(db: Db, memory: Memory, heard: number) {
  memory.checked = performance.now()
  memory.heard = heard
  const rows = await db.ask('select topic, version from versions')
  for (const [topic, version] of rows as [Topic, unknown][]) {
    if (memory.versions.get(topic) === version) continue
    memory.versions.set(topic, version)
    drop(memory, topic)
  }
}
