package classify

import _ "time/tzdata" // dates without a zone are in the provider's, wherever this runs
