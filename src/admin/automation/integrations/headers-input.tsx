import { ActionIcon, Button, Group, Input, Stack, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'

export type Header = { id: number; name: string; value: string }

/** An input for the headers of a request. */
export function HeadersInput({ headers, onChange }: { headers: Header[]; onChange: (headers: Header[]) => void }) {
  const change = (id: number, part: Partial<Header>) =>
    onChange(headers.map((header) => (header.id === id ? { ...header, ...part } : header)))
  const add = () =>
    onChange([...headers, { id: Math.max(-1, ...headers.map(({ id }) => id)) + 1, name: '', value: '' }])
  return (
    <Input.Wrapper label="Headers" labelElement="div">
      <Stack gap={6}>
        {headers.map(({ id, name, value }, n) => (
          <Group key={id} gap={6} wrap="nowrap">
            <TextInput
              flex={1}
              aria-label={`Name of header ${n + 1}`}
              placeholder="name"
              value={name}
              onChange={(event) => change(id, { name: event.currentTarget.value })}
            />
            <TextInput
              flex={1}
              aria-label={`Value of header ${n + 1}`}
              placeholder="value"
              value={value}
              onChange={(event) => change(id, { value: event.currentTarget.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove header ${n + 1}`}
              onClick={() => onChange(headers.filter((header) => header.id !== id))}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </Group>
        ))}
        <div>
          <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={add}>
            Add header
          </Button>
        </div>
      </Stack>
    </Input.Wrapper>
  )
}
