#!/bin/sh
# Pinot's own command line, where the public image of Apache Pinot has it: one compose file serves both images.
# shellcheck disable=SC2086 # JAVA_OPTS is a list of words
exec java ${JAVA_OPTS:--Xms256M -Xmx1G} \
    --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
    --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED \
    --add-opens=java.base/java.lang.reflect=ALL-UNNAMED --add-opens=java.base/jdk.internal.misc=ALL-UNNAMED \
    -Dio.netty.tryReflectionSetAccessible=true -Dlog4j2.configurationFile=/opt/pinot/log4j2.xml \
    -Dgris.log=/tmp/pinot.log \
    -cp '/opt/pinot/lib/*' org.apache.pinot.tools.admin.PinotAdministrator "$@"
