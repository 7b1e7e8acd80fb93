import { Checkbox, Group, Stack, Text, TextInput } from '@mantine/core'
import { describeRule } from '../../design/rule-sentences'
import { fieldKinds } from '../../fields'
import classes from './draft.module.css'
import type { DraftBlueprint, DraftField } from './draft-state'

type DraftReviewProps = { drafts: DraftBlueprint[]; onChange: (drafts: DraftBlueprint[]) => void }

const replaceAt = <Item,>(list: Item[], index: number, change: Partial<Item>): Item[] =>
  list.map((item, n) => (n === index ? { ...item, ...change } : item))

/** The drafted blueprints with their fields and rules; each can be left out or renamed. */
export const DraftReview = ({ drafts, onChange }: DraftReviewProps) => (
  <Stack gap="lg">
    {drafts.map((draft, n) => (
      <BlueprintReview
        key={draft.part.key}
        draft={draft}
        onChange={(change) => onChange(replaceAt(drafts, n, change))}
      />
    ))}
  </Stack>
)

type BlueprintReviewProps = { draft: DraftBlueprint; onChange: (change: Partial<DraftBlueprint>) => void }

function BlueprintReview({ draft, onChange }: BlueprintReviewProps) {
  const { part, isIncluded, key, name, fields, rules } = draft
  return (
    <fieldset className={classes.blueprint}>
      <legend>
        <Checkbox
          label={part.name}
          checked={isIncluded}
          onChange={(event) => onChange({ isIncluded: event.currentTarget.checked })}
        />
      </legend>
      {isIncluded && (
        <Stack gap="xs">
          {part.description && (
            <Text size="sm" c="dimmed" dir="auto">
              {part.description}
            </Text>
          )}
          <Group gap="xs" grow>
            <TextInput label="Name" value={name} onChange={(event) => onChange({ name: event.currentTarget.value })} />
            <TextInput label="Key" value={key} onChange={(event) => onChange({ key: event.currentTarget.value })} />
          </Group>
          <Text size="sm">Fields</Text>
          {fields.map((field, n) => (
            <FieldReview
              key={field.part.key}
              field={field}
              blueprint={part.name}
              onChange={(change) => onChange({ fields: replaceAt(fields, n, change) })}
            />
          ))}
          <Text size="sm">Rules</Text>
          {rules.length === 0 && (
            <Text size="sm" c="dimmed">
              There are no rules, so that only administrators read and change anything.
            </Text>
          )}
          {rules.map((rule, n) => (
            <Checkbox
              key={n}
              size="xs"
              label={describeRule(rule.part, part.permissionScope ?? 'user')}
              checked={rule.isIncluded}
              onChange={(event) =>
                onChange({ rules: replaceAt(rules, n, { isIncluded: event.currentTarget.checked }) })
              }
            />
          ))}
        </Stack>
      )}
    </fieldset>
  )
}

type FieldReviewProps = { field: DraftField; blueprint: string; onChange: (change: Partial<DraftField>) => void }

function FieldReview({ field: { part, key, isIncluded }, blueprint, onChange }: FieldReviewProps) {
  const name = `${part.title || part.key} of ${blueprint}`
  const kind = [fieldKinds[part.type].label, part.target && `to ${part.target}`, part.required && 'required']
  return (
    <Group gap="xs" wrap="nowrap">
      <Checkbox
        size="xs"
        aria-label={`Include ${name}`}
        checked={isIncluded}
        onChange={(event) => onChange({ isIncluded: event.currentTarget.checked })}
      />
      <TextInput
        size="xs"
        flex={1}
        aria-label={`Name of ${name}`}
        disabled={!isIncluded}
        value={key}
        onChange={(event) => onChange({ key: event.currentTarget.value })}
      />
      <Text size="xs" c="dimmed" className={classes.kind}>
        {kind.filter(Boolean).join(', ')}
      </Text>
    </Group>
  )
}
