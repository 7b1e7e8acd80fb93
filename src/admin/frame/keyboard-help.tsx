import { Kbd, Modal, Table, Title } from '@mantine/core'
import { useEffect, useState } from 'react'
import { isTextEntry } from '../ui/text-entry'

type Keys = readonly [keys: string, act: string]

const GROUPS: readonly (readonly [title: string, keys: readonly Keys[]])[] = [
  [
    'Everywhere',
    [
      ['Ctrl K', 'finds actions, screens, settings, entities and users'],
      ['?', 'shows these keyboard shortcuts'],
      ['Esc', 'closes the panel, menu or dialog'],
      ['Ctrl Enter', 'saves a form'],
    ],
  ],
  [
    'Lists',
    [
      ['j k ↓ ↑', 'go to the next or the previous row'],
      ['← →', 'go from cell to cell'],
      ['Enter', 'opens the row, or edits the cell'],
      ['e', 'edits the cell, or the first one of the row that can be edited'],
      ['x', 'marks the row'],
      ['Shift x', 'marks all rows from the last marked one'],
      ['Shift ↓ ↑', 'marks row after row'],
      ['Shift ← →', 'makes the column narrower or wider'],
      ['n', 'creates a new entry'],
      ['/', 'searches the list'],
      ['f', 'adds a filter'],
      ['Shift click', 'sorts by a further column, or marks a range'],
    ],
  ],
  ['Panel beside a list', [['j k ↓ ↑', 'show the next or the previous row']]],
]

/** All keyboard shortcuts of the page, which `?` shows. */
export function KeyboardHelp() {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const handleKey = (event: KeyboardEvent) => {
      if (event.key === '?' && !event.ctrlKey && !event.metaKey && !isTextEntry(event.target)) setOpen((now) => !now)
    }
    addEventListener('keydown', handleKey)
    return () => removeEventListener('keydown', handleKey)
  }, [])
  return (
    <Modal opened={isOpen} onClose={() => setOpen(false)} title="Keyboard shortcuts">
      {GROUPS.map(([title, keys]) => (
        <section key={title}>
          <Title order={3} mt="sm" mb={4}>
            {title}
          </Title>
          <Table verticalSpacing={4} withRowBorders={false} aria-label={title}>
            <Table.Tbody>
              {keys.map(([names, act]) => (
                <Table.Tr key={names}>
                  <Table.Td w={150} style={{ whiteSpace: 'nowrap' }}>
                    {names.split(' ').map((name) => (
                      <Kbd key={name} size="xs" mr={4}>
                        {name}
                      </Kbd>
                    ))}
                  </Table.Td>
                  <Table.Td>{act}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      ))}
    </Modal>
  )
}
