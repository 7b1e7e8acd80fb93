import { UnstyledButton } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { lazy, Suspense, useState } from 'react'
import type { Me } from '../api/schema'
import classes from './frame.module.css'

const CommandPalette = lazy(async () => ({ default: (await import('./command-palette')).CommandPalette }))

/** Opens the command palette, which is loaded when it is first asked for. */
export function CommandPaletteButton({ me }: { me: Me }) {
  const [openings, setOpenings] = useState(0)
  const open = () => setOpenings((count) => count + 1)
  useHotkeys([['mod+K', open]], [], true)
  return (
    <>
      <UnstyledButton className={classes.link} onClick={open} aria-keyshortcuts="Control+K">
        <IconSearch size={18} stroke={1.6} aria-hidden />
        <span>Find</span>
        <kbd className={classes.shortcut}>Ctrl K</kbd>
      </UnstyledButton>
      <Suspense>{openings > 0 && <CommandPalette key={openings} me={me} />}</Suspense>
    </>
  )
}
