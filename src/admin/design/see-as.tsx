import { Group, Select, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { Blueprint, Entity } from '../api/schema'
import { entityQuery } from '../data/entity-queries'
import { fieldKinds } from '../fields'
import { userQuery, userWorkspacesQuery } from '../people/user-queries'
import { ProblemMessage } from '../ui/problem-message'
import { StateTag } from '../ui/state-tag'
import { mayUseField } from './access-evaluation'
import { explainForCaller, explanationQuery, type Verdict } from './access-queries'
import { CallerSelect } from './caller-select'
import classes from './design.module.css'
import { useDesign } from './design-state'
import { describeRule, describeScope, type Scope } from './rule-sentences'
import ruleClasses from './rules.module.css'

const route = getRouteApi('/frame/data/$blueprint/all/design/see-as')

/** What a guest, a role or a user may do with the entities of a blueprint, and which rules say so. */
export function SeeAs() {
  const { before } = useDesign()
  const { as = 'guest', workspace, entity } = route.useSearch() as Record<string, string | undefined>
  const navigate = useNavigate()
  const changeSearch = (part: Record<string, string | undefined>) =>
    navigate({ to: '.', search: { as, workspace, entity, ...part } as never, replace: true })
  const [kind, name = ''] = as.split(/:(.*)/s)
  const user = kind === 'user' ? name : ''
  const explained = useQuery({
    ...explanationQuery(before.key, user || undefined, workspace),
    enabled: kind === 'user' || kind === 'guest',
  })
  const { data: workspaces = [] } = useQuery({ ...userWorkspacesQuery(user), enabled: user !== '' })
  const { data: userDetails } = useQuery({ ...userQuery(user), enabled: user !== '' })
  const chosen = useQuery({ ...entityQuery(before.key, entity ?? ''), enabled: !!entity })
  const verdicts = kind === 'role' ? explainForCaller(before, { roles: ['user', name] }) : explained.data
  const roles = kind === 'user' ? (userDetails?.roles ?? []) : kind === 'role' ? ['user', name] : undefined
  const { Input: EntityInput } = fieldKinds.relation
  return (
    <div className={classes.column}>
      <Group align="flex-end" gap="sm" mb="md">
        <CallerSelect value={as} onChange={(next) => changeSearch({ as: next, workspace: undefined })} />
        {workspaces.length > 0 && (
          <Select
            label="Active workspace"
            clearable
            placeholder="None"
            data={workspaces.map((each) => ({ value: each._id, label: each.name ?? each._id }))}
            value={workspace ?? null}
            onChange={(next) => changeSearch({ workspace: next ?? undefined })}
          />
        )}
        <EntityInput
          field={{ key: 'entity', type: 'relation', target: before.key }}
          label="For one entity"
          value={entity}
          onChange={(next) => changeSearch({ entity: next as string | undefined })}
        />
      </Group>
      {explained.error && <ProblemMessage error={explained.error} />}
      {verdicts && (
        <VerdictTable
          blueprint={before}
          verdicts={verdicts}
          entity={chosen.data?.entity}
          isKnownUser={kind !== 'role'}
        />
      )}
      {verdicts && <HiddenFields blueprint={before} roles={roles} />}
      <Text size="xs" c="dimmed" mt="sm">
        By the saved rules. What is not saved yet is in the table beside the rules.
      </Text>
    </div>
  )
}

type VerdictTableProps = { blueprint: Blueprint; verdicts: Verdict[]; entity?: Entity; isKnownUser: boolean }

function VerdictTable({ blueprint, verdicts, entity, isKnownUser }: VerdictTableProps) {
  return (
    <Table fz="sm" verticalSpacing="xs" aria-label="What they may do">
      <Table.Tbody>
        {verdicts.map((verdict) => {
          const isAllowed = verdict.scopes.length > 0
          const answer = entity && verdict.operation !== 'create' && decideForEntity(verdict, entity, isKnownUser)
          return (
            <Table.Tr key={verdict.operation}>
              <Table.Th scope="row" fw={500} w={80} className={ruleClasses.top}>
                {verdict.operation}
              </Table.Th>
              <Table.Td w={110} className={ruleClasses.top}>
                {answer ? (
                  <StateTag label={answer.label} tone={answer.tone} />
                ) : (
                  <StateTag label={isAllowed ? 'Allowed' : 'Refused'} tone={isAllowed ? 'good' : 'neutral'} />
                )}
              </Table.Td>
              <Table.Td>
                {answer ? answer.because : describeReach(verdict)}
                <RuleReasons blueprint={blueprint} verdict={verdict} />
              </Table.Td>
            </Table.Tr>
          )
        })}
      </Table.Tbody>
    </Table>
  )
}

function describeReach({ operation, scopes, rules }: Verdict): string {
  if (scopes.length) {
    const text = scopes.map((scope: Scope) => describeScope(operation, scope)).join(' and ')
    return `${text[0]!.toUpperCase()}${text.slice(1)}.`
  }
  if (rules.some(({ applies }) => applies)) return 'A rule is for them, but it reaches nothing outside of a workspace.'
  return rules.length ? 'No rule about it is for them.' : 'No rule is about it.'
}

/** The rules that allow an operation, or why those about it do not. */
function RuleReasons({ blueprint, verdict }: { blueprint: Blueprint; verdict: Verdict }) {
  const { scopes, rules } = verdict
  const applying = rules.filter(({ applies }) => applies)
  const shownRules = applying.length ? applying : rules
  if (scopes.includes('tenant') && !applying.length)
    return (
      <Text size="xs" c="dimmed">
        Administrators may do everything, whatever the rules say.
      </Text>
    )
  return shownRules.map(({ index, rule, applies, because }) => (
    <Text key={index} size="xs" c="dimmed" className={classes.changes}>
      Rule {index + 1}: {describeRule(rule, blueprint.permissionScope ?? 'user')}
      {!applies && because && ` ${because}`}
    </Text>
  ))
}

type Answer = { label: string; tone: 'good' | 'neutral' | 'warning'; because: string }

/** Returns whether an operation is allowed with one entity, and why. */
function decideForEntity({ scopes, user, workspace }: Verdict, entity: Entity, isKnownUser: boolean): Answer {
  if (!scopes.length) return { label: 'Refused', tone: 'neutral', because: 'No rule allows it.' }
  if (scopes.includes('tenant')) return { label: 'Allowed', tone: 'good', because: 'They reach everything.' }
  if (!isKnownUser)
    return { label: 'It depends', tone: 'warning', because: 'Only if it is their own or belongs to their workspace.' }
  if (user && entity.user === user) return { label: 'Allowed', tone: 'good', because: 'It is their own.' }
  if (workspace && entity.workspace === workspace)
    return { label: 'Allowed', tone: 'good', because: 'It belongs to their active workspace.' }
  return {
    ...{ label: 'Refused', tone: 'neutral' },
    because: entity.user ? 'It belongs to someone else.' : 'It has no owner.',
  }
}

/** The fields that somebody with these roles cannot read, or only read. */
function HiddenFields({ blueprint: { fields }, roles }: { blueprint: Blueprint; roles: string[] | undefined }) {
  const caller = roles && { roles }
  const hidden = fields.filter((field) => !mayUseField(field, 'readRoles', caller))
  const locked = fields.filter((field) => !hidden.includes(field) && !mayUseField(field, 'writeRoles', caller))
  const names = (list: typeof fields) => list.map(({ key }) => key).join(', ')
  return (
    <>
      {hidden.length > 0 && <Text size="sm">They never see: {names(hidden)}.</Text>}
      {locked.length > 0 && <Text size="sm">They cannot change: {names(locked)}.</Text>}
    </>
  )
}
