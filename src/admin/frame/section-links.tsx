import { Link } from '@tanstack/react-router'
import { BlueprintLinks } from './blueprint-links'
import classes from './frame.module.css'
import type { Section } from './section'

type SectionLinksProps = { sections: readonly Section[]; current?: Section; onChoose?(): void }

/** The sections of the page, and the blueprints below theirs. */
export const SectionLinks = ({ sections, current, onChoose }: SectionLinksProps) => (
  // biome-ignore lint/a11y/noStaticElementInteractions: the links inside are what is clicked
  <div className={classes.sections} onClick={onChoose} onKeyDown={undefined}>
    {sections.map(({ label, path, icon: Icon, pages }) => (
      <div key={path}>
        <Link to={pages[0]?.path} className={`${classes.link} ${path === current?.path ? classes.active : ''}`}>
          <Icon size={18} stroke={1.6} aria-hidden />
          <span>{label}</span>
        </Link>
        {path === '/data' && <BlueprintLinks />}
      </div>
    ))}
  </div>
)
