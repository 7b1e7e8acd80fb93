import { apiCaller } from '../fakes/cli'

/** Sends JSON and returns the body of the answer, which has to be a success. */
export async function sendJson(
  url: string,
  headers: Record<string, string>,
  method: string,
  path: string,
  body?: object,
) {
  const answer = await apiCaller(url, headers)(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

/** Imports entities of a blueprint of Atoll. */
export async function importRows(url: string, headers: Record<string, string>, key: string, rows: object[]) {
  const body = rows.map((row) => JSON.stringify(row)).join('\n')
  const path = `/api/blueprints/${key}/entities/import?format=ndjson`
  const type = { 'content-type': 'application/x-ndjson' }
  const response = await fetch(url + path, { method: 'POST', headers: { ...headers, ...type }, body })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  await response.text()
}
