import { Drawer, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconMenu2 } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import classes from './phone-bar.module.css'
import type { Section } from './section'
import { SectionLinks } from './section-links'

/** The sections that the bar shows; the others are in its sheet. */
const MAX_SHOWN_SECTIONS = 3

type PhoneBarProps = { sections: readonly Section[]; current?: Section; search: ReactNode; foot: ReactNode }

/** The bar at the bottom of a phone: the first sections, the search, and a sheet with everything. */
export function PhoneBar({ sections, current, search, foot }: PhoneBarProps) {
  const [isOpen, { open, close }] = useDisclosure()
  return (
    <nav className={classes.bar} aria-label="Main">
      {sections.slice(0, MAX_SHOWN_SECTIONS).map(({ label, path, icon: Icon, pages }) => (
        <Link
          key={path}
          to={pages[0]?.path}
          className={`${classes.item} ${path === current?.path ? classes.current : ''}`}
        >
          <Icon size={20} stroke={1.6} aria-hidden />
          {label}
        </Link>
      ))}
      {search}
      <UnstyledButton className={classes.item} onClick={open} aria-haspopup="dialog">
        <IconMenu2 size={20} stroke={1.6} aria-hidden />
        Menu
      </UnstyledButton>
      <Drawer opened={isOpen} onClose={close} position="bottom" title="Menu" size="75%">
        <div className={classes.sheet}>
          <SectionLinks sections={sections} current={current} onChoose={close} />
          <div className={classes.foot}>{foot}</div>
        </div>
      </Drawer>
    </nav>
  )
}
