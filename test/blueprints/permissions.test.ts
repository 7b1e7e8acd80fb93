import { describe, expect, test } from 'bun:test'
import type { Model, ModelField } from '../../src/blueprints/model'
import {
  type Caller,
  isInScope,
  isVisibleTo,
  listHiddenKeys,
  mayReadField,
  mayWriteField,
  requireRowScope,
  rowScopeOf,
} from '../../src/blueprints/permissions'
import type { Rule, Scope } from '../../src/blueprints/shapes'

const callerWith = (roles: string[], workspace?: { roles?: string[]; labels?: string[] }): Caller => ({
  user: 'u',
  roles,
  privileged: roles.includes('admin'),
  workspace: workspace ? { _id: 'w', name: 'W', roles: [], labels: [], ...workspace } : null,
})
const guest = undefined
const user = callerWith(['user'])
const member = callerWith(['user'], { roles: ['member'], labels: ['pro'] })
const memberWithoutRoles = callerWith(['user'], {})
const admin = callerWith(['admin'])

const modelWith = (permissions?: Partial<Rule>[], permissionScope?: Scope) =>
  ({
    key: 'things',
    permissions: permissions?.map((rule) => ({ operation: 'read', ...rule })),
    permissionScope,
  }) as Model

const ALL_ROWS = { all: true } as const
const NO_ROWS = { all: false } as const
const OWN_ROWS = { all: false, user: 'u' } as const
const WORKSPACE_ROWS = { all: false, workspace: 'w' } as const
const tenant = 'tenant' as const

type RowScopeCase = [title: string, rules: Partial<Rule>[], caller: Caller | undefined, scope: object | undefined]
const cases: RowScopeCase[] = [
  ['a user has no row scope without rules', [], user, undefined],
  ['an admin gets all rows without rules', [], admin, ALL_ROWS],
  ['a guest gets all rows by a guest rule', [{ guest: true, scope: tenant }], guest, ALL_ROWS],
  ['a user gets all rows by a guest rule', [{ guest: true, scope: tenant }], user, ALL_ROWS],
  ['a guest gets no rows by a guest rule with scope user', [{ guest: true, scope: 'user' }], guest, NO_ROWS],
  ['a guest has no row scope by a rule with guest: false', [{ guest: false, scope: tenant }], guest, undefined],
  ['a user with the role gets all rows', [{ roleBased: ['x', 'user'], scope: tenant }], user, ALL_ROWS],
  ['a user without the role has no row scope', [{ roleBased: ['boss'], scope: tenant }], user, undefined],
  ['a guest has no row scope by a role', [{ roleBased: ['user'], scope: tenant }], guest, undefined],
  [
    'a member has no row scope by a workspace role in roleBased',
    [{ roleBased: ['member'], scope: tenant }],
    member,
    undefined,
  ],
  ['a user without roles gets all rows by *', [{ roleBased: ['*'], scope: tenant }], callerWith([]), ALL_ROWS],
  ['a guest has no row scope by *', [{ roleBased: ['*'], scope: tenant }], guest, undefined],
  [
    'a member with the workspace role gets all rows',
    [{ workspaceRoleBased: ['member'], scope: tenant }],
    member,
    ALL_ROWS,
  ],
  [
    'a member without the workspace role has no row scope',
    [{ workspaceRoleBased: ['member'], scope: tenant }],
    memberWithoutRoles,
    undefined,
  ],
  [
    'a user outside of workspaces has no row scope by a workspace role',
    [{ workspaceRoleBased: ['member'], scope: tenant }],
    user,
    undefined,
  ],
  [
    'a member has no row scope by a tenant role in workspaceRoleBased',
    [{ workspaceRoleBased: ['user'], scope: tenant }],
    member,
    undefined,
  ],
  [
    'a member without roles gets all rows by * of the workspace',
    [{ workspaceRoleBased: ['*'], scope: tenant }],
    memberWithoutRoles,
    ALL_ROWS,
  ],
  [
    'a user outside of workspaces has no row scope by * of the workspace',
    [{ workspaceRoleBased: ['*'], scope: tenant }],
    user,
    undefined,
  ],
  [
    'a member with one of both roles gets all rows',
    [{ roleBased: ['boss'], workspaceRoleBased: ['member'], scope: tenant }],
    member,
    ALL_ROWS,
  ],
  [
    'a member with the role and the label gets all rows',
    [{ roleBased: ['user'], workspaceLabelsBased: ['pro'], scope: tenant }],
    member,
    ALL_ROWS,
  ],
  [
    'a member with the role but without the label has no row scope',
    [{ roleBased: ['user'], workspaceLabelsBased: ['max'], scope: tenant }],
    member,
    undefined,
  ],
  [
    'a user outside of workspaces has no row scope by a label',
    [{ roleBased: ['user'], workspaceLabelsBased: ['pro'], scope: tenant }],
    user,
    undefined,
  ],
  [
    'a member has no row scope by a label without a role',
    [{ workspaceLabelsBased: ['pro'], scope: tenant }],
    member,
    undefined,
  ],
  [
    'a member of any workspace gets all rows by the label *',
    [{ roleBased: ['user'], workspaceLabelsBased: ['*'], scope: tenant }],
    memberWithoutRoles,
    ALL_ROWS,
  ],
  [
    'a user outside of workspaces has no row scope by the label *',
    [{ roleBased: ['user'], workspaceLabelsBased: ['*'], scope: tenant }],
    user,
    undefined,
  ],
  [
    'a user gets all rows by an empty list of labels',
    [{ roleBased: ['user'], workspaceLabelsBased: [], scope: tenant }],
    user,
    ALL_ROWS,
  ],
  [
    'a guest has no row scope by a guest rule with a label',
    [{ guest: true, workspaceLabelsBased: ['pro'], scope: tenant }],
    guest,
    undefined,
  ],
  ['a member gets their own rows by the scope user', [{ roleBased: ['user'], scope: 'user' }], member, OWN_ROWS],
  [
    'a member gets the rows of the workspace by the scope workspace',
    [{ roleBased: ['user'], scope: 'workspace' }],
    member,
    WORKSPACE_ROWS,
  ],
  [
    'a user outside of workspaces gets no rows by the scope workspace',
    [{ roleBased: ['user'], scope: 'workspace' }],
    user,
    NO_ROWS,
  ],
  ['a member gets their own rows by a rule without a scope', [{ roleBased: ['user'] }], member, OWN_ROWS],
  [
    'a member gets the union of the scopes of two rules',
    [
      { roleBased: ['user'], scope: 'user' },
      { workspaceRoleBased: ['member'], scope: 'workspace' },
    ],
    member,
    { all: false, user: 'u', workspace: 'w' },
  ],
  [
    'a member gets all rows when the first of two rules is the widest',
    [
      { roleBased: ['user'], scope: tenant },
      { roleBased: ['user'], scope: 'user' },
    ],
    member,
    ALL_ROWS,
  ],
  [
    'a user gets only their own rows when the wider rule does not apply',
    [
      { roleBased: ['user'], scope: 'user' },
      { roleBased: ['boss'], scope: tenant },
    ],
    user,
    OWN_ROWS,
  ],
  [
    'a user has no row scope by a rule of another operation',
    [{ operation: 'update', roleBased: ['user'] }],
    user,
    undefined,
  ],
]

test.each(cases)('%s', (_, rules, caller, scope) => {
  expect(rowScopeOf(modelWith(rules), 'read', caller)).toEqual(scope as never)
})

test('a rule without a scope has the permissionScope of its blueprint', () => {
  const rules = [{ roleBased: ['user'] }]
  expect(rowScopeOf(modelWith(rules, 'tenant'), 'read', member)).toEqual(ALL_ROWS)
  expect(rowScopeOf(modelWith(rules, 'workspace'), 'read', member)).toEqual(WORKSPACE_ROWS)
})

test('a create rule with the scope workspace asks a user without one to activate a workspace', () => {
  const rules: Partial<Rule>[] = [{ operation: 'create', roleBased: ['user'], scope: 'workspace' }]
  expect(rowScopeOf(modelWith(rules), 'create', member)).toEqual(WORKSPACE_ROWS)
  expect(() => requireRowScope(modelWith(rules), 'create', user)).toThrow('Activate one first')
  expect(rowScopeOf(modelWith([...rules, { ...rules[0], scope: 'user' }]), 'create', user)).toEqual(OWN_ROWS)
})

test('a blueprint with a user scope gives each of several callers only their own rows', () => {
  const own = modelWith([{ roleBased: ['user'], scope: 'user' }])
  const callers = ['a', 'b', 'c'].map((id) => ({ ...user, user: id }))
  for (const _ of [1, 2])
    for (const one of callers) expect(rowScopeOf(own, 'read', one)).toEqual({ all: false, user: one.user })
})

describe('the status of a refused caller', () => {
  const status = (rules: Partial<Rule>[], caller?: Caller) => {
    try {
      requireRowScope(modelWith(rules), 'read', caller)
    } catch (error) {
      return (error as { status?: number }).status
    }
  }

  test.each([
    ['a guest gets 401 when a role could help', [{ roleBased: ['user'] }], guest, 401],
    ['a guest gets 401 when a workspace could help', [{ workspaceRoleBased: ['*'] }], guest, 401],
    ['a guest gets 401 when a workspace label could help', [{ guest: true, workspaceLabelsBased: ['x'] }], guest, 401],
    ['a guest gets 403 when there are no rules', [], guest, 403],
    [
      'a guest gets 403 when only another operation has a rule',
      [{ operation: 'update', roleBased: ['user'] }],
      guest,
      403,
    ],
    ['a signed-in user gets 403 when no rule applies', [{ roleBased: ['boss'] }], user, 403],
  ] as [string, Partial<Rule>[], Caller | undefined, number][])('%s', (_, rules, caller, expected) => {
    expect(status(rules, caller)).toBe(expected)
  })
})

test('a row is in the scope of its user, of its workspace and of all rows', () => {
  const row = { user: 'u', workspace: 'w' }
  for (const scope of [ALL_ROWS, OWN_ROWS, WORKSPACE_ROWS, { all: false, user: 'x', workspace: 'w' }])
    expect(isInScope(scope, row)).toBe(true)
  for (const scope of [NO_ROWS, { all: false, user: 'x' }, { all: false, workspace: 'x' }])
    expect(isInScope(scope, row)).toBe(false)
  for (const scope of [NO_ROWS, OWN_ROWS, WORKSPACE_ROWS])
    expect(isInScope(scope, { user: null, workspace: null })).toBe(false)
})

test('a blueprint is visible to callers to whom any of its rules applies, and to admins', () => {
  const rules = modelWith([{ operation: 'delete', workspaceRoleBased: ['member'] }])
  expect([guest, user, memberWithoutRoles, member, admin].map((caller) => isVisibleTo(rules, caller))).toEqual([
    false,
    false,
    false,
    true,
    true,
  ])
})

test('a field with readRoles or writeRoles is for those roles and admins, and without them for everybody', () => {
  const field = (readRoles?: string[]) => ({ readRoles, writeRoles: readRoles }) as ModelField
  const callers = [guest, user, member, callerWith(['boss']), admin]
  for (const isAllowed of [mayReadField, mayWriteField]) {
    expect(callers.map((one) => isAllowed(field(['boss']), one))).toEqual([false, false, false, true, true])
    expect(callers.map((one) => isAllowed(field(['*']), one))).toEqual([false, true, true, true, true])
    expect(callers.map((one) => isAllowed(field(['member']), one))).toEqual([false, false, false, false, true])
    for (const all of [[], undefined]) expect(callers.every((one) => isAllowed(field(all), one))).toBe(true)
  }
})

test('callers with the same rights share cached permissions, and each gets their own rows', () => {
  let judged = 0
  const rule: Rule = { operation: 'read', workspaceRoleBased: ['member'], scope: 'user' }
  Object.defineProperty(rule, 'roleBased', { get: () => void judged++ })
  const fields = [{ key: 'secret', readRoles: ['boss'] }, { key: 'title' }] as ModelField[]
  const model = { ...modelWith([]), permissions: [rule], fields } as Model
  const people = ['ada', 'bob'].map((user) => ({ ...callerWith(['user'], { roles: ['member'] }), user }))
  for (const one of people) {
    expect(rowScopeOf(model, 'read', one)).toEqual({ all: false, user: one.user })
    expect(listHiddenKeys(model, one)).toEqual(['secret'])
  }
  expect(judged).toBe(1)
  expect(listHiddenKeys(model, people[0])).toBe(listHiddenKeys(model, people[1]))
  expect(rowScopeOf(model, 'read', callerWith(['user'], { roles: ['guest'] }))).toBeUndefined()
  expect(rowScopeOf(model, 'read', guest)).toBeUndefined()
  expect(listHiddenKeys(model, callerWith(['boss']))).toEqual([])
  expect(listHiddenKeys(model, guest)).toEqual(['secret'])
})
