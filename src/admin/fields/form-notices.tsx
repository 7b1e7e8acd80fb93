import { Anchor, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { FormField, FormValues } from './form-values'

type FormNoticeProps = { text: ReactNode; action?: string; onAct?: () => void }

/** A line above the fields of a form, with what can be done about it. */
export const FormNotice = ({ text, action, onAct }: FormNoticeProps) => (
  <Text size="xs" c="dimmed" role="status">
    {text}{' '}
    {action && (
      <Anchor component="button" type="button" size="xs" onClick={onAct}>
        {action}
      </Anchor>
    )}
  </Text>
)

type ChangeNoticeProps = {
  changedBy: ReactNode
  fields: readonly FormField[]
  keys: string[]
  /** What others saved in fields that were typed in, too. */
  conflicts: FormValues
  onKeep: () => void
}

/** Says that somebody else changed the thing while it was open, and which of its fields. */
export function ChangeNotice({
  changedBy = 'Changed by someone else',
  fields,
  keys,
  conflicts,
  onKeep,
}: ChangeNoticeProps) {
  const names = fields.filter(({ key }) => keys.includes(key)).map(({ key, title }) => title || key)
  const hasConflicts = Object.keys(conflicts).length > 0
  return (
    <FormNotice
      text={
        <>
          {changedBy}: {names.join(', ')}.
        </>
      }
      action={hasConflicts ? 'Keep mine' : undefined}
      onAct={onKeep}
    />
  )
}
