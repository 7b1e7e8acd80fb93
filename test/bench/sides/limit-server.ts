// `bun limit-server.ts <folder> <full|normal>`: the most that this machine can do: a bare Bun.serve, one SQLite file,
// plain selects with fitting indexes, and responses stored as JSON.
import { Database } from 'bun:sqlite'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Contact } from '../contacts'
import { LIMIT_FILES, type PlainList } from './limit'

const [folder = '', durability = 'full'] = process.argv.slice(2)
const readJson = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'))
const db = new Database(join(folder, LIMIT_FILES.data))
db.exec(
  `pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = ${durability}; pragma cache_size = -64000`,
)
const headers: Record<string, string> = readJson(LIMIT_FILES.headers)
type Row = { json: string; companyJson?: string; companyStart?: number; companyEnd?: number }
const lists = readJson(LIMIT_FILES.lists) as PlainList[]
const prepare = ({ sql, countSql }: PlainList) => ({
  select: db.prepare<Row, (string | number)[]>(sql),
  count: countSql === undefined ? undefined : db.prepare<{ count: number }, (string | number)[]>(countSql),
})
const prepared: ReturnType<typeof prepare>[] = []
const byId = db.prepare<{ json: string }, [string]>('select json from contacts where id = ?')
const insert = db.prepare(
  `insert into contacts (id, name, email, stage, worth, company, active, born, created, json)
   values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
)
const update = db.prepare<{ json: string }, [string, number, string, number, string]>(
  `update contacts set stage = ?, worth = ?, json = json_set(json, '$.stage', ?, '$.worth', ?) where id = ? returning json`,
)

const showCompany = ({ json, companyJson, companyStart, companyEnd }: Row) =>
  companyJson ? json.slice(0, companyStart) + companyJson + json.slice(companyEnd) : json

function answerList(place: number, values: (string | number)[]): Response {
  prepared[place] ??= prepare(lists[place]!)
  const { select, count } = prepared[place]
  const body = `[${select.all(...values).map(showCompany)}]`
  if (!count) return new Response(body, { headers })
  return new Response(body, { headers: { ...headers, 'x-total-count': `${count.get(...values)!.count}` } })
}

async function create(request: Request): Promise<Response> {
  const json = await request.text()
  const { name, email, stage, worth, company, active, born }: Omit<Contact, 'company'> & { company: string } =
    JSON.parse(json)
  insert.run(Bun.randomUUIDv7(), name, email, stage, worth, company, active ? 1 : 0, born, Date.now(), json)
  return new Response(json, { status: 201, headers })
}

async function change(id: string, request: Request): Promise<Response> {
  const { stage, worth } = (await request.json()) as { stage: string; worth: number }
  return new Response(update.get(stage, worth, stage, worth, id)!.json, { headers })
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const path = request.url.slice(request.url.indexOf('/', 8))
    if (request.method === 'POST') return create(request)
    if (path.startsWith('/lists/')) {
      const query = path.indexOf('?')
      return answerList(Number(path.slice(7, query)), JSON.parse(decodeURIComponent(path.slice(query + 1))))
    }
    const id = path.slice(path.lastIndexOf('/') + 1)
    if (request.method === 'PATCH') return change(id, request)
    if (id === 'health') return new Response()
    const row = byId.get(id)
    return row ? new Response(row.json, { headers }) : new Response(null, { status: 404 })
  },
})
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }))
