import { ActionIcon, Button, Group, Input, PasswordInput, Stack, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useState } from 'react'
import type { InputProps } from '../../fields/field-kind'

type Values = Record<string, string | null>
type Row = { id: number; name: string; value: string; isStored: boolean }

const toValues = (rows: Row[], stored: readonly string[]): Values | undefined => {
  const removed = stored.filter((name) => !rows.some((row) => row.name === name)).map((name) => [name, null] as const)
  const writtenRows = rows.filter(({ name, value, isStored }) => name && (value || !isStored))
  const entries = [...removed, ...writtenRows.map(({ name, value }) => [name, value] as const)]
  return entries.length ? Object.fromEntries(entries) : undefined
}

/** Returns an input for the values of an environment. Those that are stored are never shown, only replaced. */
export const createEnvInput = (stored: readonly string[]) =>
  function EnvInput({ label, description, error, onChange }: InputProps) {
    const [rows, setRows] = useState<Row[]>(() => stored.map((name, id) => ({ id, name, value: '', isStored: true })))
    const change = (next: Row[]) => {
      setRows(next)
      onChange(toValues(next, stored))
    }
    const changeRow = (id: number, part: Partial<Row>) =>
      change(rows.map((row) => (row.id === id ? { ...row, ...part } : row)))
    const add = () =>
      change([...rows, { id: Math.max(-1, ...rows.map(({ id }) => id)) + 1, name: '', value: '', isStored: false }])
    return (
      <Input.Wrapper label={label} description={description} error={error} labelElement="div">
        <Stack gap={6} mt={6}>
          {rows.map(({ id, name, value, isStored }, n) => (
            <Group key={id} gap={6} wrap="nowrap">
              <TextInput
                flex={1}
                aria-label={`Name of variable ${n + 1}`}
                placeholder="NAME"
                value={name}
                disabled={isStored}
                onChange={(event) => changeRow(id, { name: event.currentTarget.value })}
              />
              <PasswordInput
                flex={1}
                aria-label={name ? `Value of ${name}` : `Value of variable ${n + 1}`}
                placeholder={isStored ? 'is set' : 'value'}
                autoComplete="new-password"
                value={value}
                onChange={(event) => changeRow(id, { value: event.currentTarget.value })}
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${name || `variable ${n + 1}`}`}
                onClick={() => change(rows.filter((row) => row.id !== id))}
              >
                <IconTrash size={16} />
              </ActionIcon>
            </Group>
          ))}
          <div>
            <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={add}>
              Add variable
            </Button>
          </div>
        </Stack>
      </Input.Wrapper>
    )
  }
