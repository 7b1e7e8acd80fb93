import { ActionIcon, Button, Group, Input, NumberInput, Stack, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useState } from 'react'
import type { InputProps } from '../fields/field-kind'
import { fieldKinds } from '../fields/index'

type Limit = { id: number; name: string; value: number | '' }

const toLimits = (value: unknown): Limit[] =>
  Object.entries((value ?? {}) as Record<string, number>).map(([name, number], id) => ({ id, name, value: number }))

const isOfNumbers = (value: unknown) => Object.values((value ?? {}) as object).every((each) => typeof each === 'number')

/** An input for numbers by name. Limits that hold anything else are shown as JSON. */
export function PlanLimitsInput(props: InputProps) {
  const [isPlain] = useState(() => isOfNumbers(props.value))
  const Json = fieldKinds.object.Input
  return isPlain ? <NumbersByName {...props} /> : <Json {...props} />
}

function NumbersByName({ label, description, error, value, onChange }: InputProps) {
  const [limits, setLimits] = useState(() => toLimits(value))
  const change = (next: Limit[]) => {
    setLimits(next)
    onChange(Object.fromEntries(next.filter(({ name }) => name).map(({ name, value: number }) => [name, number || 0])))
  }
  const changeOne = (id: number, part: Partial<Limit>) =>
    change(limits.map((limit) => (limit.id === id ? { ...limit, ...part } : limit)))
  const add = () => setLimits([...limits, { id: Math.max(-1, ...limits.map(({ id }) => id)) + 1, name: '', value: '' }])
  return (
    <Input.Wrapper label={label} description={description} error={error} labelElement="div">
      <Stack gap={6} mt={4} align="stretch">
        {limits.map((limit, index) => (
          <Group key={limit.id} gap="xs" wrap="nowrap">
            <TextInput
              flex={1}
              aria-label={`Name of limit ${index + 1}`}
              placeholder="projects"
              value={limit.name}
              onChange={(event) => changeOne(limit.id, { name: event.currentTarget.value })}
            />
            <NumberInput
              w={110}
              hideControls
              aria-label={`Value of limit ${index + 1}`}
              value={limit.value}
              onChange={(number) => changeOne(limit.id, { value: typeof number === 'number' ? number : '' })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove limit ${index + 1}`}
              onClick={() => change(limits.filter(({ id }) => id !== limit.id))}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </Group>
        ))}
        <Button
          variant="subtle"
          size="compact-xs"
          leftSection={<IconPlus size={12} />}
          onClick={add}
          style={{ alignSelf: 'start' }}
        >
          Add limit
        </Button>
      </Stack>
    </Input.Wrapper>
  )
}
