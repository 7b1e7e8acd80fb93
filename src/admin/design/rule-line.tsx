import { ActionIcon, Checkbox, Menu, Popover, Stack, TagsInput, UnstyledButton } from '@mantine/core'
import { IconAlertTriangle, IconChevronDown, IconTrash } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { Rule } from '../api/schema'
import { describeCallers, describeScope, OPERATIONS, type Scope } from './rule-sentences'
import classes from './rules.module.css'

type RuleLineProps = {
  rule: Rule
  number: number
  usualScope: Scope
  roles: string[]
  warnings: string[]
  error?: string
  onChange: (rule: Rule) => void
  onRemove: () => void
}

/** One rule as a sentence whose parts are menus. */
export function RuleLine({ rule, number, usualScope, roles, warnings, error, onChange, onRemove }: RuleLineProps) {
  const { operation, scope } = rule
  return (
    <li className={classes.rule}>
      <div className={classes.line}>
        <span className={classes.number} aria-hidden>
          {number}
        </span>
        <div className={classes.sentence}>
          <CallerMenu rule={rule} roles={roles} number={number} onChange={onChange} />
          <span>may</span>
          <ChoiceMenu
            label={`Operations of rule ${number}`}
            shown={operation}
            choices={OPERATIONS.map((each) => ({ value: each, label: each }))}
            onChoose={(next) => onChange({ ...rule, operation: next })}
          />
          <ChoiceMenu
            label={`Scope of rule ${number}`}
            shown={describeScope(operation, scope ?? usualScope)}
            choices={[
              ...(['user', 'workspace', 'tenant'] as const).map((each) => ({
                value: each as Scope | undefined,
                label: describeScope(operation, each),
              })),
              { value: undefined, label: 'as usual for this blueprint' },
            ]}
            onChoose={(next) => {
              const { scope: _, ...rest } = rule
              onChange(next ? { ...rest, scope: next } : rest)
            }}
          />
        </div>
        <ActionIcon
          variant="subtle"
          color="gray"
          className={classes.remove}
          aria-label={`Remove rule ${number}`}
          onClick={onRemove}
        >
          <IconTrash size={16} />
        </ActionIcon>
      </div>
      {error && <p className={classes.error}>{error}</p>}
      {warnings.map((warning) => (
        <RuleWarning key={warning}>{warning}</RuleWarning>
      ))}
    </li>
  )
}

/** What is allowed, but probably not meant. */
export const RuleWarning = ({ children }: { children: ReactNode }) => (
  <p className={classes.warning}>
    <IconAlertTriangle size={14} aria-label="Warning:" /> {children}
  </p>
)

type ChoiceMenuProps<Value> = {
  label: string
  shown: string
  choices: { value: Value; label: string }[]
  onChoose: (value: Value) => void
}

/** A part of a sentence that a menu changes. */
export function ChoiceMenu<Value>({ label, shown, choices, onChoose }: ChoiceMenuProps<Value>) {
  return (
    <Menu position="bottom-start">
      <Menu.Target>
        <UnstyledButton className={classes.part} aria-label={`${label}: ${shown}`}>
          {shown}
          <IconChevronDown size={12} aria-hidden />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map((choice) => (
          <Menu.Item key={choice.label} onClick={() => onChoose(choice.value)}>
            {choice.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

type CallerMenuProps = Pick<RuleLineProps, 'rule' | 'roles' | 'number' | 'onChange'>

/** Whom a rule is for: the subject of its sentence. */
function CallerMenu({ rule, roles, number, onChange }: CallerMenuProps) {
  const { guest, roleBased = [], workspaceRoleBased = [], workspaceLabelsBased = [] } = rule
  const shown = describeCallers(rule)
  const setNames = (part: 'roleBased' | 'workspaceRoleBased' | 'workspaceLabelsBased', names: string[]) => {
    const { [part]: _, ...rest } = rule
    onChange(names.length ? { ...rest, [part]: names } : rest)
  }
  const setGuest = (isChecked: boolean) => {
    const { guest: _, ...rest } = rule
    onChange(isChecked ? { ...rest, guest: true } : rest)
  }
  const toggleAll = (part: 'roleBased' | 'workspaceRoleBased', isChecked: boolean) =>
    setNames(part, isChecked ? ['*'] : [])
  return (
    <Popover position="bottom-start" shadow="md" width={320} trapFocus>
      <Popover.Target>
        <UnstyledButton className={classes.part} aria-label={`Whom rule ${number} is for: ${shown}`}>
          <bdi>{shown}</bdi>
          <IconChevronDown size={12} aria-hidden />
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="sm" role="group" aria-label="Whom it is for">
          <Checkbox
            label="Everybody, also guests"
            checked={!!guest}
            onChange={(event) => setGuest(event.currentTarget.checked)}
          />
          <Checkbox
            label="Everybody who is signed in"
            checked={roleBased.includes('*')}
            onChange={(event) => toggleAll('roleBased', event.currentTarget.checked)}
          />
          <TagsInput
            label="Users with a role"
            data={roles}
            value={roleBased.filter((role) => role !== '*')}
            comboboxProps={{ withinPortal: false }}
            onChange={(names) => setNames('roleBased', names)}
          />
          <Checkbox
            label="Members of their active workspace"
            checked={workspaceRoleBased.includes('*')}
            onChange={(event) => toggleAll('workspaceRoleBased', event.currentTarget.checked)}
          />
          <TagsInput
            label="Members with a workspace role"
            data={['admin', 'member']}
            value={workspaceRoleBased.filter((role) => role !== '*')}
            comboboxProps={{ withinPortal: false }}
            onChange={(names) => setNames('workspaceRoleBased', names)}
          />
          <TagsInput
            label="Only in workspaces with a label"
            value={workspaceLabelsBased}
            splitChars={[]}
            onChange={(names) => setNames('workspaceLabelsBased', names)}
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
