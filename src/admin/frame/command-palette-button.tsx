import { UnstyledButton } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { lazy, Suspense } from 'react'
import { observable, useObservable } from '../api/observable'
import type { Me } from '../api/schema'
import classes from './frame.module.css'
import barClasses from './phone-bar.module.css'

const CommandPalette = lazy(async () => ({ default: (await import('./command-palette')).CommandPalette }))

const openings = observable(0)
const openPalette = () => openings.set(openings.get() + 1)

/** Opens the command palette. */
export const CommandPaletteButton = ({ isPhone }: { isPhone: boolean }) => (
  <UnstyledButton
    className={isPhone ? barClasses.item : classes.link}
    onClick={openPalette}
    aria-keyshortcuts="Control+K"
  >
    <IconSearch size={18} stroke={1.6} aria-hidden />
    <span>Find</span>
    {!isPhone && <kbd className={classes.shortcut}>Ctrl K</kbd>}
  </UnstyledButton>
)

/** The command palette, which is loaded when it is first opened by its button or by Ctrl-K. */
export function LazyCommandPalette({ me }: { me: Me }) {
  const opening = useObservable(openings)
  useHotkeys([['mod+K', openPalette]], [], true)
  return <Suspense>{opening > 0 && <CommandPalette key={opening} me={me} />}</Suspense>
}
