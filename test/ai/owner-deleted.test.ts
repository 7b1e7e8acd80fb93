import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { housekeepingTasks } from '../../src/jobs/housekeeping'
import { runDueJobs } from '../../src/jobs/runner'
import { apiClient, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { chatMessage, createAiFixture } from './fixtures'

const at = await createAiFixture()
const { tenant, admin, user, openai, main, source } = at
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

let userCount = 0
/** Creates a user whom the test may delete. */
async function createUser(...roles: string[]) {
  const { _id } = await registerUser(tenant, { username: `guest${userCount++}` }, ['user', ...roles])
  const { token } = await issueApiToken(tenant, _id, { nickname: 'test' })
  return { _id, client: apiClient(at.origin, { 'x-api-key': token }) }
}
const deleteUser = (id: string) => at.done(admin.delete(`/users/${id}`))
const countRows = async (sql: string, ...params: string[]) => Number((await tenant.db.query(sql, params))[0]![0])
const countThreads = (id: string) => countRows('select count(*) from threads where "user" = ?', id)
const storagePath = `/ai/sources/${source}/storage`

describe('a deleted user', () => {
  test('a deleted user’s threads and messages are all deleted, and the threads of other users stay', async () => {
    const { _id, client } = await createUser()
    const long = await at.thread(main, client)
    await tenant.write((tx) =>
      tx.executeMany(
        `insert into thread_messages (thread, number, role, content, ours, incomplete, created) values (?, ?, 'user', 'x', 0, 0, 0)`,
        Array.from({ length: 1_200 }, (_, n) => [long, n + 1]),
      ),
    )
    for (let n = 0; n < 120; n++) await at.thread(main, client)
    const own = await at.thread()
    await at.chat(user, main, {}, own)
    await deleteUser(_id)
    await runDueJobs(tenant)
    expect(await countThreads(_id)).toBe(0)
    expect(await countRows('select count(*) from thread_messages where thread = ?', long)).toBe(0)
    expect((await admin.get(`/ai/threads?user=${_id}`)).body).toEqual([])
    expect(statusAndCode(await admin.get(`/ai/threads/${long}`))).toEqual([404, 'THREAD_NOT_FOUND'])
    expect((await at.threadOf(own)).messages).toHaveLength(2)
  })

  test('a deleted user’s own vector stores and those of their threads are deleted, while files in shared stores stay', async () => {
    const { _id, client } = await createUser('editor')
    const agent = await at.agent({ vectorStores: ['user', 'tenant'] })
    const thread = await at.thread(agent, client)
    const subjects = { user: _id, thread, tenant: undefined }
    for (const [scope, subjectId] of Object.entries(subjects)) {
      const { vectorStore } = await at.done(client.post(storagePath, { integrationId: agent, scope, subjectId }))
      const content = `Quinces of the ${scope}.`
      await at.done(client.post(`${storagePath}/upload`, { vectorStoreId: vectorStore._id, content }))
    }
    await deleteUser(_id)
    const living = 'select scope from vector_stores where expires is null and integration = ? order by scope'
    const left = () => tenant.db.query(living, [agent])
    expect(await left()).toEqual([['tenant'], ['thread']])
    await runDueJobs(tenant)
    expect(await left()).toEqual([['tenant']])
    const held = { ...tenant, signal: new AbortController().signal }
    for (const task of housekeepingTasks().values()) await task(held as never)
    const files = 'select count(*) from knowledge_files where "user" = ?'
    expect(await countRows(files, _id)).toBe(1)
    const { body } = await at.chat(user, agent, { messages: [chatMessage('What of quinces?')] })
    expect(body.citations).toHaveLength(1)
  })

  test('a deleted user’s usage rows stay', async () => {
    const { _id, client } = await createUser()
    await at.chat(client)
    await deleteUser(_id)
    await runDueJobs(tenant)
    expect(await at.done(admin.get(`/ai/usage?user=${_id}`))).toMatchObject([{ user: _id, status: 'completed' }])
  })

  test('a completion that runs while its user is deleted ends normally, and leaves usage rows but no thread', async () => {
    const { _id, client } = await createUser()
    const records = await at.agent({ recordThread: true })
    const thread = await at.thread(main, client)
    openai.reply({ text: 'Slow words.', pieces: 3, pace: 50 }, { text: 'Slow words.', pieces: 3, pace: 50 })
    const both = [at.chat(client, records, { stream: true }), at.chat(client, main, { stream: true }, thread)]
    await waitUntil(() => openai.requests.length === 2)
    await deleteUser(_id)
    await runDueJobs(tenant)
    for (const { status, body } of await Promise.all(both))
      expect([status, body]).toEqual([200, expect.stringContaining('[DONE]')])
    expect(await countThreads(_id)).toBe(0)
    expect(await countRows('select count(*) from thread_messages where thread = ?', thread)).toBe(0)
    expect(await at.done(admin.get(`/ai/usage?user=${_id}`))).toHaveLength(2)
  })
})

test('a deleted workspace’s vector stores are deleted, while the threads begun in it stay', async () => {
  const { _id: workspace } = await at.made('/workspaces', { name: 'Office' })
  await at.done(admin.post(`/workspaces/${workspace}/activate`))
  const thread = await at.thread(main, admin)
  const body = { integrationId: main, scope: 'workspace', subjectId: workspace }
  const { vectorStore } = await at.done(admin.post(storagePath, body))
  await at.done(admin.delete(`/workspaces/${workspace}`))
  await runDueJobs(tenant)
  const upload = { vectorStoreId: vectorStore._id, content: 'Quinces.' }
  expect(statusAndCode(await admin.post(`${storagePath}/upload`, upload))).toEqual([404, 'VECTOR_STORE_NOT_FOUND'])
  expect((await admin.get(`/ai/threads/${thread}`)).status).toBe(200)
})
