import { Button, Group, Menu, Text, Title } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { accessPresets } from '../data/access-presets'
import { AccessMatrix } from './access-matrix'
import { isSame, toField } from './design-draft'
import { roleNamesQuery } from './design-queries'
import { useDesign } from './design-state'
import { LimitationLine } from './limitation-line'
import { ChoiceMenu, RuleLine, RuleWarning } from './rule-line'
import { describeScope, type Scope } from './rule-sentences'
import { listRuleWarnings } from './rule-warnings'
import classes from './rules.module.css'

/** The rules of a blueprint as sentences, and beside them who may do what by them. */
export function DesignRules() {
  const { before, draft, update, flaws } = useDesign()
  const { permissions, permissionScope } = draft
  const { data: roles = [] } = useQuery(roleNamesQuery)
  const fields = draft.fields.map(toField)
  const isAsSaved = isSame(permissions, before.permissions ?? []) && isSame(draft.limitations, before.limitations ?? [])
  const warnings = [
    ...listRuleWarnings({ permissions, permissionScope, fields }, roles),
    // The server knows what members of workspaces can give themselves, once the rules are saved.
    ...(isAsSaved ? (before.warnings ?? []) : []),
  ]
  const warningsOf = (path: string) =>
    warnings.filter((each) => each.path === path || each.path.startsWith(`${path}/`)).map(({ message }) => message)
  const errorAt = (path: string) =>
    flaws.find((flaw) => flaw.path === path || flaw.path.startsWith(`${path}/`))?.message
  const generalWarnings = warnings.filter(({ path }) => !/^\/permissions\/\d/.test(path))
  return (
    <div className={classes.rules}>
      <section className={classes.sentences} aria-labelledby="rules">
        <Title order={2} id="rules" className={classes.heading}>
          Rules
        </Title>
        {permissions.length === 0 && (
          <Text size="sm" c="dimmed">
            There are no rules, so that only administrators read and change anything.
          </Text>
        )}
        <ol className={classes.list} aria-label="Rules">
          {permissions.map((rule, index) => (
            <RuleLine
              key={index}
              rule={rule}
              number={index + 1}
              usualScope={permissionScope}
              roles={roles}
              warnings={warningsOf(`/permissions/${index}`)}
              error={errorAt(`/permissions/${index}`)}
              onChange={(next) => update((now) => ({ ...now, permissions: now.permissions.with(index, next) }))}
              onRemove={() => update((now) => ({ ...now, permissions: now.permissions.toSpliced(index, 1) }))}
            />
          ))}
        </ol>
        <RuleButtons />
        {generalWarnings.map(({ message }) => (
          <RuleWarning key={message}>{message}</RuleWarning>
        ))}
        <div className={classes.sentence}>
          <Text size="sm" c="dimmed">
            A rule that does not say what it reaches, reaches
          </Text>
          <ChoiceMenu
            label="Default scope of rules"
            shown={describeScope('read', permissionScope)}
            choices={(['user', 'workspace', 'tenant'] as const).map((each) => ({
              value: each as Scope,
              label: describeScope('read', each),
            }))}
            onChoose={(scope) => update((now) => ({ ...now, permissionScope: scope }))}
          />
        </div>
        <Limits roles={roles} errorAt={errorAt} />
      </section>
      <div className={classes.outcome}>
        <Title order={2} id="outcome" className={classes.heading}>
          Access by these rules
        </Title>
        <AccessMatrix permissions={permissions} permissionScope={permissionScope} fields={fields} />
      </div>
    </div>
  )
}

function RuleButtons() {
  const { draft, update } = useDesign()
  const add = () =>
    update((now) => ({
      ...now,
      permissions: [...now.permissions, { operation: 'read', scope: 'tenant', roleBased: ['*'] }],
    }))
  return (
    <Group gap="xs">
      <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={add}>
        Add rule
      </Button>
      <Menu position="bottom-start">
        <Menu.Target>
          <Button variant="subtle">{draft.permissions.length ? 'Replace all by…' : 'Begin with…'}</Button>
        </Menu.Target>
        <Menu.Dropdown>
          {accessPresets.map(({ value, label, description, rules }) => (
            <Menu.Item key={value} onClick={() => update((now) => ({ ...now, permissions: rules }))}>
              {label}
              <Text size="xs" c="dimmed">
                {description}
              </Text>
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
    </Group>
  )
}

function Limits({ roles, errorAt }: { roles: string[]; errorAt: (path: string) => string | undefined }) {
  const { draft, update } = useDesign()
  const { limitations, fields } = draft
  const add = () => update((now) => ({ ...now, limitations: [...now.limitations, { scope: 'user', value: 100 }] }))
  return (
    <>
      {limitations.length > 0 && (
        <Title order={2} className={classes.heading} mt="lg">
          Limits
        </Title>
      )}
      <ol className={classes.list} aria-label="Limits">
        {limitations.map((limitation, index) => (
          <LimitationLine
            key={index}
            limitation={limitation}
            number={index + 1}
            fieldKeys={fields.filter(({ multi, type }) => !multi && type !== 'object').map(({ key }) => key)}
            roles={roles}
            error={errorAt(`/limitations/${index}`)}
            onChange={(next) => update((now) => ({ ...now, limitations: now.limitations.with(index, next) }))}
            onRemove={() => update((now) => ({ ...now, limitations: now.limitations.toSpliced(index, 1) }))}
          />
        ))}
      </ol>
      <div>
        <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={add}>
          Add limit
        </Button>
      </div>
    </>
  )
}
