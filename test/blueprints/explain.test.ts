import { expect, test } from 'bun:test'
import { registerUser } from '../../src/accounts/users/users'
import { createThingsFixture } from '../entities/fixtures'
import { statusAndCode } from '../test-tenant'

const explainPath = '/blueprints/things/permissions/explain'
const PERMISSIONS = [
  { operation: 'read', scope: 'tenant', guest: true },
  { operation: 'read', scope: 'user', roleBased: ['user'] },
  { operation: 'create', scope: 'user', roleBased: ['user', 'boss'] },
  { operation: 'update', scope: 'workspace', roleBased: ['*'] },
  { operation: 'update', scope: 'tenant', roleBased: ['user'], workspaceLabelsBased: ['pro'] },
]

test('GET /blueprints/:key/permissions/explain lists for each operation the rules that allow it, their row scope, and why others do not', async () => {
  const { as, users } = await createThingsFixture([], PERMISSIONS)
  const { status, body } = await as('admin').get(`${explainPath}?user=${users.user}`)
  expect(status).toBe(200)
  const [create, read, update, remove] = body.operations
  expect({ ...body, operations: 0 }).toEqual({
    blueprint: 'things',
    user: { _id: users.user, roles: ['user'] },
    workspace: null,
    operations: 0,
  })
  expect(create).toEqual({
    operation: 'create',
    allowed: true,
    reach: { all: false, user: users.user, workspace: null },
    because: 'Rule 2 allows it: this user may create entities of their own.',
    rules: [{ index: 2, rule: PERMISSIONS[2], applies: true, because: 'It is for the role user. Its scope is user.' }],
  })
  expect([read.allowed, read.reach]).toEqual([true, { all: true, user: null, workspace: null }])
  expect(read.because).toBe('Rules 0, 1 allow it: this user may read all entities.')
  expect(read.rules.map((one: { because: string }) => one.because)).toEqual([
    'It is for everyone, including guests. Its scope is tenant.',
    'It is for the role user. Its scope is user.',
  ])
  expect([update.allowed, update.reach]).toEqual([true, { all: false, user: null, workspace: null }])
  expect(update.because).toBe(
    'Rule 3 allows it: this user may update none of the entities, because none are their own.',
  )
  expect(update.rules.map((one: { index: number; applies: boolean }) => [one.index, one.applies])).toEqual([
    [3, true],
    [4, false],
  ])
  expect(update.rules[1].because).toBe(
    'It asks for a workspace with one of the labels pro, and there is no active one.',
  )
  expect(remove).toEqual({
    operation: 'delete',
    allowed: false,
    reach: null,
    because: 'No rule of the blueprint is about delete.',
    rules: [],
  })
})

test('explain without a user describes a guest, and with an operation only that operation', async () => {
  const { as } = await createThingsFixture([], PERMISSIONS)
  for (const query of ['', '?user=', '?user=undefined&operation=undefined', '?operation=']) {
    const { body } = await as('admin').get(explainPath + query)
    expect(body.user).toBeNull()
    expect(body.operations.map((one: { allowed: boolean }) => one.allowed)).toEqual([false, true, false, false])
  }
  const { body } = await as('admin').get(`${explainPath}?operation=create`)
  expect(body.operations).toEqual([
    {
      operation: 'create',
      allowed: false,
      reach: null,
      because: 'No rule about create is for a guest.',
      rules: [{ index: 2, rule: PERMISSIONS[2], applies: false, because: 'It is not for guests.' }],
    },
  ])
})

test('explain names the roles that a user lacks, and states that admins may do everything', async () => {
  const fixture = await createThingsFixture(
    [],
    [{ operation: 'create', scope: 'workspace', roleBased: ['boss'], workspaceRoleBased: ['member'] }],
  )
  const admin = fixture.as('admin')
  const explainCreate = async (user: string) =>
    (await admin.get(`${explainPath}?operation=create&user=${user}`)).body.operations[0]
  const user = await explainCreate(fixture.users.user)
  expect([user.allowed, user.because]).toEqual([false, 'No rule about create is for this user.'])
  expect(user.rules[0].because).toBe(
    'It asks for one of the roles boss or one of the roles member in the active workspace.',
  )
  const boss = await registerUser(fixture.tenant, { username: 'boss', email: 'boss@x.test' }, ['boss'])
  expect((await explainCreate(boss._id)).because).toBe(
    'Rule 0 allows it only in a workspace, and this user is in none.',
  )
  const adminOperation = await explainCreate(fixture.users.admin)
  expect([adminOperation.allowed, adminOperation.because]).toEqual([
    true,
    'Admins may do everything, whatever the rules say.',
  ])
  await admin.put('/blueprints/things', { permissions: [] })
  expect((await explainCreate(fixture.users.user)).because).toBe(
    'The blueprint has no rules, so it is for admins only.',
  )
})

test('requests succeed and fail as explain predicts', async () => {
  const { as, path, users, anonymous } = await createThingsFixture([], PERMISSIONS)
  const { body } = await as('admin').get(`${explainPath}?user=${users.user}`)
  const [create, read, , remove] = body.operations
  expect([create.allowed, (await as('user').post(path, {})).status]).toEqual([true, 201])
  expect([read.reach.all, (await as('other').get(path)).body.length]).toEqual([true, 1])
  expect([remove.allowed, (await as('user').delete(`${path}/all?confirm=things`)).status]).toEqual([false, 403])
  expect(statusAndCode(await anonymous.post(path, {}))).toEqual([401, 'UNAUTHENTICATED'])
})

test('explain answers 401 or 403 to others than admins, 404 for unknown users and blueprints, and 400 for unknown operations', async () => {
  const { as, anonymous } = await createThingsFixture([], PERMISSIONS)
  for (const name of ['user', 'editor'] as const)
    expect(statusAndCode(await as(name).get(explainPath))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await anonymous.get(explainPath))).toEqual([401, 'UNAUTHENTICATED'])
  const otherTenant = await createThingsFixture([], PERMISSIONS)
  for (const user of ['nobody', otherTenant.users.user, '%EF%BF%BD', "'", 'x'.repeat(5_000)])
    expect(statusAndCode(await as('admin').get(`${explainPath}?user=${user}`)), user.slice(0, 50)).toEqual([
      404,
      'USER_NOT_FOUND',
    ])
  expect(statusAndCode(await as('admin').get('/blueprints/none/permissions/explain'))).toEqual([
    404,
    'BLUEPRINT_NOT_FOUND',
  ])
  expect(statusAndCode(await as('admin').get(`${explainPath}?operation=fly`))).toEqual([400, 'INVALID_INPUT'])
})
