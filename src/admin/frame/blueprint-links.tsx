import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { blueprintsQuery } from '../api/queries'
import classes from './frame.module.css'

/** The blueprints in the side bar. */
export function BlueprintLinks() {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  return (
    <ul className={classes.blueprints}>
      {blueprints.map(({ key, name }, n) => (
        <li key={key}>
          <Link
            to="/data/$blueprint"
            params={{ blueprint: key }}
            // All show the screen that is opened most, so one of them loads its code beforehand.
            preload={n === 0 ? 'render' : 'intent'}
            className={`${classes.link} ${classes.blueprint}`}
            activeProps={{ className: classes.active }}
          >
            <span title={name}>{name}</span>
          </Link>
        </li>
      ))}
    </ul>
  )
}
