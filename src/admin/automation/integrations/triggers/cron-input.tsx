import { Button, Group, Text, TextInput } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { useFormValues } from '../../../fields/field-form'
import type { InputProps } from '../../../fields/field-kind'
import { describeCron } from './cron-words'

const NextTimes = lazy(async () => ({ default: (await import('./next-times')).NextTimes }))

const EXAMPLES = [
  ['Every hour', '0 * * * *'],
  ['Every day', '0 9 * * *'],
  ['Weekdays', '0 9 * * MON-FRI'],
  ['Every Monday', '0 9 * * MON'],
  ['Every month', '0 9 1 * *'],
] as const

/** An input for a schedule, with what it means in words and its next times. */
export function CronInput({ field: _, value, onChange, ...rest }: InputProps) {
  const timezone = String(useFormValues()['trigger/timezone'] || 'UTC')
  const cron = String(value ?? '')
  const meaning = describeCron(cron)
  return (
    <div>
      <TextInput
        {...rest}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        value={cron}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
      <Group gap={4} my={6}>
        {EXAMPLES.map(([label, example]) => (
          <Button key={example} variant="default" size="compact-xs" onClick={() => onChange(example)}>
            {label}
          </Button>
        ))}
      </Group>
      {meaning && (
        <Text size="sm" fw={500} role="status">
          {meaning}
        </Text>
      )}
      <Suspense>{cron.trim() && <NextTimes cron={cron} timezone={timezone} />}</Suspense>
    </div>
  )
}
