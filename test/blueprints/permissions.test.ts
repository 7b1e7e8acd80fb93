import { describe, expect, test } from 'bun:test'
import type { Model, ModelField } from '../../src/blueprints/model'
import {
  type Caller,
  isInScope,
  isVisibleTo,
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

type RowScopeCase = [what: string, rules: Partial<Rule>[], who: Caller | undefined, reach: object | undefined]
const cases: RowScopeCase[] = [
  ['no rules: nobody', [], user, undefined],
  ['no rules: but admins', [], admin, ALL_ROWS],
  ['guest: a guest', [{ guest: true, scope: tenant }], guest, ALL_ROWS],
  ['guest: anybody', [{ guest: true, scope: tenant }], user, ALL_ROWS],
  ['guest, own: a guest owns nothing', [{ guest: true, scope: 'user' }], guest, NO_ROWS],
  ['guest: false is for nobody by that', [{ guest: false, scope: tenant }], guest, undefined],
  ['a role: who has it', [{ roleBased: ['x', 'user'], scope: tenant }], user, ALL_ROWS],
  ['a role: who lacks it', [{ roleBased: ['boss'], scope: tenant }], user, undefined],
  ['a role: not a guest', [{ roleBased: ['user'], scope: tenant }], guest, undefined],
  ['a role: not one of the workspace', [{ roleBased: ['member'], scope: tenant }], member, undefined],
  ['*: who is signed in', [{ roleBased: ['*'], scope: tenant }], callerWith([]), ALL_ROWS],
  ['*: not a guest', [{ roleBased: ['*'], scope: tenant }], guest, undefined],
  ['a role of the workspace: who has it', [{ workspaceRoleBased: ['member'], scope: tenant }], member, ALL_ROWS],
  [
    'a role of the workspace: who lacks it',
    [{ workspaceRoleBased: ['member'], scope: tenant }],
    memberWithoutRoles,
    undefined,
  ],
  ['a role of the workspace: outside of all', [{ workspaceRoleBased: ['member'], scope: tenant }], user, undefined],
  [
    'a role of the workspace: not one of the tenant',
    [{ workspaceRoleBased: ['user'], scope: tenant }],
    member,
    undefined,
  ],
  ['* of the workspace: who is in one', [{ workspaceRoleBased: ['*'], scope: tenant }], memberWithoutRoles, ALL_ROWS],
  ['* of the workspace: outside of all', [{ workspaceRoleBased: ['*'], scope: tenant }], user, undefined],
  ['either role suffices', [{ roleBased: ['boss'], workspaceRoleBased: ['member'], scope: tenant }], member, ALL_ROWS],
  ['labels: a further gate', [{ roleBased: ['user'], workspaceLabelsBased: ['pro'], scope: tenant }], member, ALL_ROWS],
  ['labels: closed', [{ roleBased: ['user'], workspaceLabelsBased: ['max'], scope: tenant }], member, undefined],
  [
    'labels: closed outside of all',
    [{ roleBased: ['user'], workspaceLabelsBased: ['pro'], scope: tenant }],
    user,
    undefined,
  ],
  ['labels: open nothing by themselves', [{ workspaceLabelsBased: ['pro'], scope: tenant }], member, undefined],
  [
    'labels: * is any workspace',
    [{ roleBased: ['user'], workspaceLabelsBased: ['*'], scope: tenant }],
    memberWithoutRoles,
    ALL_ROWS,
  ],
  ['labels: * is one at least', [{ roleBased: ['user'], workspaceLabelsBased: ['*'], scope: tenant }], user, undefined],
  ['labels: none asked', [{ roleBased: ['user'], workspaceLabelsBased: [], scope: tenant }], user, ALL_ROWS],
  ['labels: also for guest rules', [{ guest: true, workspaceLabelsBased: ['pro'], scope: tenant }], guest, undefined],
  ['scope user', [{ roleBased: ['user'], scope: 'user' }], member, OWN_ROWS],
  ['scope workspace', [{ roleBased: ['user'], scope: 'workspace' }], member, WORKSPACE_ROWS],
  ['scope workspace, outside of all', [{ roleBased: ['user'], scope: 'workspace' }], user, NO_ROWS],
  ['no scope is the blueprint’s, which is user', [{ roleBased: ['user'] }], member, OWN_ROWS],
  [
    'scopes add up',
    [
      { roleBased: ['user'], scope: 'user' },
      { workspaceRoleBased: ['member'], scope: 'workspace' },
    ],
    member,
    { all: false, user: 'u', workspace: 'w' },
  ],
  [
    'the widest wins, in whatever order',
    [
      { roleBased: ['user'], scope: tenant },
      { roleBased: ['user'], scope: 'user' },
    ],
    member,
    ALL_ROWS,
  ],
  [
    'rules that do not apply add nothing',
    [
      { roleBased: ['user'], scope: 'user' },
      { roleBased: ['boss'], scope: tenant },
    ],
    user,
    OWN_ROWS,
  ],
  ['rules of other operations count for nothing', [{ operation: 'update', roleBased: ['user'] }], user, undefined],
]

test.each(cases)('reach: %s', (_, rules, who, reach) => {
  expect(rowScopeOf(modelWith(rules), 'read', who)).toEqual(reach as never)
})

test('the scope of the blueprint stands in for one that a rule does not name', () => {
  const rules = [{ roleBased: ['user'] }]
  expect(rowScopeOf(modelWith(rules, 'tenant'), 'read', member)).toEqual(ALL_ROWS)
  expect(rowScopeOf(modelWith(rules, 'workspace'), 'read', member)).toEqual(WORKSPACE_ROWS)
})

test('what is made in the name of a workspace needs one', () => {
  const rules: Partial<Rule>[] = [{ operation: 'create', roleBased: ['user'], scope: 'workspace' }]
  expect(rowScopeOf(modelWith(rules), 'create', member)).toEqual(WORKSPACE_ROWS)
  expect(() => requireRowScope(modelWith(rules), 'create', user)).toThrow('Activate one first')
  expect(rowScopeOf(modelWith([...rules, { ...rules[0], scope: 'user' }]), 'create', user)).toEqual(OWN_ROWS)
})

test('the same blueprint gives each caller their own reach, also when asked in turns', () => {
  const own = modelWith([{ roleBased: ['user'], scope: 'user' }])
  const callers = ['a', 'b', 'c'].map((id) => ({ ...user, user: id }))
  for (const _ of [1, 2])
    for (const one of callers) expect(rowScopeOf(own, 'read', one)).toEqual({ all: false, user: one.user })
})

describe('refused', () => {
  const status = (rules: Partial<Rule>[], who?: Caller) => {
    try {
      requireRowScope(modelWith(rules), 'read', who)
    } catch (error) {
      return (error as { status?: number }).status
    }
  }

  test.each([
    ['a guest, where signing in could help', [{ roleBased: ['user'] }], guest, 401],
    ['a guest, where a workspace could help', [{ workspaceRoleBased: ['*'] }], guest, 401],
    ['a guest, where a label of a workspace could help', [{ guest: true, workspaceLabelsBased: ['x'] }], guest, 401],
    ['a guest, where nothing could help', [], guest, 403],
    ['a guest, where only another operation is for others', [{ operation: 'update', roleBased: ['user'] }], guest, 403],
    ['somebody known', [{ roleBased: ['boss'] }], user, 403],
  ] as [string, Partial<Rule>[], Caller | undefined, number][])('%s', (_, rules, who, expected) => {
    expect(status(rules, who)).toBe(expected)
  })
})

test('a row is within reach of its user, of its workspace, and of who reaches all', () => {
  const row = { user: 'u', workspace: 'w' }
  for (const reach of [ALL_ROWS, OWN_ROWS, WORKSPACE_ROWS, { all: false, user: 'x', workspace: 'w' }])
    expect(isInScope(reach, row)).toBe(true)
  for (const reach of [NO_ROWS, { all: false, user: 'x' }, { all: false, workspace: 'x' }])
    expect(isInScope(reach, row)).toBe(false)
  for (const reach of [NO_ROWS, OWN_ROWS, WORKSPACE_ROWS])
    expect(isInScope(reach, { user: null, workspace: null })).toBe(false)
})

test('a blueprint concerns whom any of its rules is for', () => {
  const rules = modelWith([{ operation: 'delete', workspaceRoleBased: ['member'] }])
  expect([guest, user, memberWithoutRoles, member, admin].map((who) => isVisibleTo(rules, who))).toEqual([
    false,
    false,
    false,
    true,
    true,
  ])
})

test('fields are for the roles that they name, for everybody when they name none', () => {
  const field = (readRoles?: string[]) => ({ readRoles, writeRoles: readRoles }) as ModelField
  const who = [guest, user, member, callerWith(['boss']), admin]
  for (const may of [mayReadField, mayWriteField]) {
    expect(who.map((one) => may(field(['boss']), one))).toEqual([false, false, false, true, true])
    expect(who.map((one) => may(field(['*']), one))).toEqual([false, true, true, true, true])
    expect(who.map((one) => may(field(['member']), one))).toEqual([false, false, false, false, true])
    for (const all of [[], undefined]) expect(who.every((one) => may(field(all), one))).toBe(true)
  }
})
