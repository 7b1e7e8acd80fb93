import { ActionIcon, NumberInput, Popover, Stack, TagsInput, TextInput, UnstyledButton } from '@mantine/core'
import { IconChevronDown, IconTrash } from '@tabler/icons-react'
import type { Limitation } from '../api/schema'
import { ChoiceMenu } from './rule-line'
import { listNames, type Scope } from './rule-sentences'
import classes from './rules.module.css'

const OWNER_WORDS: Record<Scope, string> = { user: 'Each user', workspace: 'Each workspace', tenant: 'All together' }

const describeValue = (value: Limitation['value']) =>
  typeof value === 'number' ? value.toLocaleString() : `as many as the plan says (${value.planLimit || '…'})`

/** Returns for whom and among which entities a limit counts. */
function describeCondition({ properties = [], roles = [], workspaceLabels = [] }: Limitation) {
  const parts = [
    properties.length && `with the same ${listNames(properties, 'and')}`,
    roles.length && `for the role ${listNames(roles)}`,
    workspaceLabels.length && `in workspaces with the label ${listNames(workspaceLabels)}`,
  ].filter(Boolean)
  return parts.join(', ') || 'in all'
}

type LimitationLineProps = {
  limitation: Limitation
  number: number
  fieldKeys: string[]
  roles: string[]
  error?: string
  onChange: (limitation: Limitation) => void
  onRemove: () => void
}

/** One limit as a sentence whose parts are menus. */
export function LimitationLine({
  limitation,
  number,
  fieldKeys,
  roles,
  error,
  onChange,
  onRemove,
}: LimitationLineProps) {
  const { scope, value } = limitation
  const setNames = (part: 'properties' | 'roles' | 'workspaceLabels', names: string[]) => {
    const { [part]: _, ...rest } = limitation
    onChange((names.length ? { ...rest, [part]: names } : rest) as Limitation)
  }
  return (
    <li className={classes.rule}>
      <div className={classes.line}>
        <div className={classes.sentence}>
          <ChoiceMenu
            label={`Whom limit ${number} is for`}
            shown={OWNER_WORDS[scope]}
            choices={(['user', 'workspace', 'tenant'] as const).map((each) => ({
              value: each,
              label: OWNER_WORDS[each],
            }))}
            onChoose={(next) => onChange({ ...limitation, scope: next })}
          />
          <span>may have at most</span>
          <PartPopover label={`How many limit ${number} allows`} shown={describeValue(value)}>
            <NumberInput
              label="A number"
              min={0}
              max={1_000_000}
              allowDecimal={false}
              value={typeof value === 'number' ? value : ''}
              onChange={(next) => onChange({ ...limitation, value: Number(next) || 0 })}
            />
            <TextInput
              label="Or the name of a limit of the plan"
              value={typeof value === 'number' ? '' : value.planLimit}
              onChange={({ currentTarget: { value: planLimit } }) =>
                onChange({
                  ...limitation,
                  value: planLimit ? { ...(typeof value === 'object' && value), planLimit } : 100,
                })
              }
            />
            {typeof value === 'object' && (
              <NumberInput
                label="Without a plan"
                min={0}
                allowDecimal={false}
                value={value.otherwise ?? 0}
                onChange={(next) => onChange({ ...limitation, value: { ...value, otherwise: Number(next) || 0 } })}
              />
            )}
          </PartPopover>
          <span>entities</span>
          <PartPopover label={`Which entities limit ${number} counts`} shown={describeCondition(limitation)}>
            <TagsInput
              label="With the same"
              data={fieldKeys}
              value={limitation.properties ?? []}
              comboboxProps={{ withinPortal: false }}
              onChange={(names) => setNames('properties', names)}
            />
            <TagsInput
              label="Only for the roles"
              data={roles}
              value={limitation.roles ?? []}
              comboboxProps={{ withinPortal: false }}
              onChange={(names) => setNames('roles', names)}
            />
            <TagsInput
              label="Only in workspaces with a label"
              value={limitation.workspaceLabels ?? []}
              splitChars={[]}
              onChange={(names) => setNames('workspaceLabels', names)}
            />
          </PartPopover>
        </div>
        <ActionIcon
          variant="subtle"
          color="gray"
          className={classes.remove}
          aria-label={`Remove limit ${number}`}
          onClick={onRemove}
        >
          <IconTrash size={16} />
        </ActionIcon>
      </div>
      {error && <p className={classes.error}>{error}</p>}
    </li>
  )
}

function PartPopover({ label, shown, children }: { label: string; shown: string; children: React.ReactNode }) {
  return (
    <Popover position="bottom-start" shadow="md" width={300} trapFocus>
      <Popover.Target>
        <UnstyledButton className={classes.part} aria-label={`${label}: ${shown}`}>
          <bdi>{shown}</bdi>
          <IconChevronDown size={12} aria-hidden />
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="sm">{children}</Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
