import { Kbd, Modal, Table, Title } from '@mantine/core'
import { useEffect, useState } from 'react'

type Keys = readonly [keys: string, act: string]

const GROUPS: readonly (readonly [title: string, keys: readonly Keys[]])[] = [
  [
    'Everywhere',
    [
      ['Ctrl K', 'finds pages and things'],
      ['?', 'shows these keys'],
      ['Esc', 'closes what is open'],
      ['Ctrl Enter', 'saves a form'],
    ],
  ],
  [
    'Lists',
    [
      ['j k ↓ ↑', 'go to the next or the previous row'],
      ['← →', 'go from cell to cell'],
      ['Enter', 'opens the row, or changes the cell'],
      ['e', 'changes the cell, or the first that can be changed'],
      ['x', 'marks the row'],
      ['Shift x', 'marks all rows from the one that was marked last'],
      ['Shift ↓ ↑', 'marks row after row'],
      ['Shift ← →', 'makes the column narrower or wider'],
      ['n', 'adds one'],
      ['/', 'searches'],
      ['f', 'adds a filter'],
      ['Shift click', 'sorts by a further column, or marks a range'],
    ],
  ],
  ['Beside a list', [['j k ↓ ↑', 'show the next or the previous row']]],
]

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && !!target.closest('input, textarea, select, [contenteditable]')

/** All keys of the page, which `?` shows. */
export function KeyboardHelp() {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const handleKey = (event: KeyboardEvent) => {
      if (event.key === '?' && !event.ctrlKey && !event.metaKey && !isTyping(event.target)) setOpen((now) => !now)
    }
    addEventListener('keydown', handleKey)
    return () => removeEventListener('keydown', handleKey)
  }, [])
  return (
    <Modal opened={isOpen} onClose={() => setOpen(false)} title="Keys">
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
